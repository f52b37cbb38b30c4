export default {
  id: "sums",
  title: "Sums",
  systemPrompt: "End your answer with a line such as: #### 12",
  evaluate: { kind: "non_empty" },
  cases: "./sums.jsonl",
};

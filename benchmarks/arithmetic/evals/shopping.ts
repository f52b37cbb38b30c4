// Cases in a sibling file, one JSON object a line; each brings its own expected number.
export default {
  id: "shopping",
  title: "Shopping",
  systemPrompt: "Work the problem out step by step. End with a line of four hash marks and the number, like: #### 42",
  evaluate: { kind: "non_empty" },
  cases: "./shopping.jsonl",
}

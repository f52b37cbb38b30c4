export default {
  id: "opposites",
  title: "Opposites",
  systemPrompt: "Answer with one lower-case word.",
  evaluate: { kind: "exact" },
  cases: "./opposites.csv",
};

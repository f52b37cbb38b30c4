export default {
  id: "rivers",
  title: "Rivers",
  evaluate: { kind: "non_empty" },
  cases: { transformer: "../transformers/rivers.ts", sources: { rivers: "../data/rivers.txt" } },
};

export default {
  id: "e",
  cases: { transformer: "../transformers/x.ts", sources: { rows: "./rows.txt" } },
  evaluate: { kind: "non_empty" },
};

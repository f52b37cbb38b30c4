export default { id: "j-values", cases: { transformer: "../transformers/j-values.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

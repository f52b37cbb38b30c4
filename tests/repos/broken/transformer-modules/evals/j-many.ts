export default { id: "j-many", cases: { transformer: "../transformers/j-many.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "d-function", cases: { transformer: "../transformers/d-function.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

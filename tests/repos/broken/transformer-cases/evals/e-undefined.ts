export default { id: "e-undefined", cases: { transformer: "../transformers/e-undefined.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

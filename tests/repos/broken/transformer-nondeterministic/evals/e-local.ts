export default { id: "e-local", cases: { transformer: "../transformers/e-local.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

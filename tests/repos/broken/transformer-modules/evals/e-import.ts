export default { id: "e-import", cases: { transformer: "../transformers/e-import.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

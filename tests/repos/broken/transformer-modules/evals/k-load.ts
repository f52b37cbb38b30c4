export default { id: "k-load", cases: { transformer: "../transformers/k-load.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

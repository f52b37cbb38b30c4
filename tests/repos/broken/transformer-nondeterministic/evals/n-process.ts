export default { id: "n-process", cases: { transformer: "../transformers/n-process.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "m-files", cases: { transformer: "../transformers/m-files.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

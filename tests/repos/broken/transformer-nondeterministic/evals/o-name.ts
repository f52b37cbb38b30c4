export default { id: "o-name", cases: { transformer: "../transformers/o-name.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

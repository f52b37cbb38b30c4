export default { id: "h-none", cases: { transformer: "../transformers/h-none.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "h-date", cases: { transformer: "../transformers/h-date.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

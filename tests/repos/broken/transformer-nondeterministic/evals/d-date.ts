export default { id: "d-date", cases: { transformer: "../transformers/d-date.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

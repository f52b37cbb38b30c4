export default { id: "g-ids", cases: { transformer: "../transformers/g-ids.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

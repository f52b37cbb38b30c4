export default { id: "a-uuid", cases: { transformer: "../transformers/a-uuid.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

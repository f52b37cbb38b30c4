export default { id: "c-fields", cases: { transformer: "../transformers/c-fields.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "f-throws", cases: { transformer: "../transformers/f-throws.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "a-object", cases: { transformer: "../transformers/a-object.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

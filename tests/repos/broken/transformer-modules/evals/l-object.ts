export default { id: "l-object", cases: { transformer: "../transformers/l-object.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

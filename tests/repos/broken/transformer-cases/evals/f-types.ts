export default { id: "f-types", cases: { transformer: "../transformers/f-types.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "b-no-default", cases: { transformer: "../transformers/b-no-default.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "f-name", cases: { transformer: "../transformers/x.ts", sources: { "Rows!": "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "c-unknown", cases: { transformer: "../transformers/x.ts", source: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

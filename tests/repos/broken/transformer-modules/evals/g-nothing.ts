export default { id: "g-nothing", cases: { transformer: "../transformers/g-nothing.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "d-syntax", cases: { transformer: "../transformers/d-syntax.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

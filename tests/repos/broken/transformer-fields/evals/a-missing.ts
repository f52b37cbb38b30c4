export default { id: "a-missing", cases: { transformer: "../transformers/no.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "c-year", cases: { transformer: "../transformers/c-year.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

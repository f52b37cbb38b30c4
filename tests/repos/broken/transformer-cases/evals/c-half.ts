export default { id: "c-half", cases: { transformer: "../transformers/c-half.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

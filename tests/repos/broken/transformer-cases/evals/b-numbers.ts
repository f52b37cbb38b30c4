export default { id: "b-numbers", cases: { transformer: "../transformers/b-numbers.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "b-random", cases: { transformer: "../transformers/b-random.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

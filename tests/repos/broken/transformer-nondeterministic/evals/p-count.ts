export default { id: "p-count", cases: { transformer: "../transformers/p-count.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

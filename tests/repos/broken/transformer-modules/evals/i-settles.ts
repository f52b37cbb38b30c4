export default { id: "i-settles", cases: { transformer: "../transformers/i-settles.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "i-zone", cases: { transformer: "../transformers/i-zone.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

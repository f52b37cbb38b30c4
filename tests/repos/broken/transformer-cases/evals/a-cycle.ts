export default { id: "a-cycle", cases: { transformer: "../transformers/a-cycle.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "h-suffix", cases: { transformer: "../data/rows.txt", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

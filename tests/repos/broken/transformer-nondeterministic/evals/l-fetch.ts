export default { id: "l-fetch", cases: { transformer: "../transformers/l-fetch.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "j-bytes", cases: { transformer: "../transformers/x.ts", sources: { rows: "../data/latin1.txt" } }, evaluate: { kind: "non_empty" } };

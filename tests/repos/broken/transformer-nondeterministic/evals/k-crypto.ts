export default { id: "k-crypto", cases: { transformer: "../transformers/k-crypto.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

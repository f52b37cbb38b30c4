export default { id: "f-locale", cases: { transformer: "../transformers/f-locale.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

export default { id: "h-intl", cases: { transformer: "../transformers/h-intl.ts", sources: { rows: "../data/rows.txt" } }, evaluate: { kind: "non_empty" } };

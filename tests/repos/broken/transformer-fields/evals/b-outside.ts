export default { id: "b-outside", cases: { transformer: "../../x.ts", sources: { rows: "../../rows.txt" } }, evaluate: { kind: "non_empty" } };

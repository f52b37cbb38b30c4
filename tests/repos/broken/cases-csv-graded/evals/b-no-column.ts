export default { id: "b-no-column", cases: "./b-no-column.csv", evaluate: { kind: "exact" } };

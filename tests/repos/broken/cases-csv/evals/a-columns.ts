export default { id: "a-columns", cases: "./a-columns.csv", evaluate: { kind: "non_empty" } };

export default { id: "b-missing", cases: "./b-missing.csv", evaluate: { kind: "non_empty" } };

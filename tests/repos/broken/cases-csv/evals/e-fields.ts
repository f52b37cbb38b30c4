export default { id: "e-fields", cases: "./e-fields.csv", evaluate: { kind: "non_empty" } };

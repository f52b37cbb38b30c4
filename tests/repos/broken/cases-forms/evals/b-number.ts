export default { id: "b", cases: 3, evaluate: { kind: "non_empty" } };

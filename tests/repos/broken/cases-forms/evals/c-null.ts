export default { id: "c", cases: null, evaluate: { kind: "non_empty" } };

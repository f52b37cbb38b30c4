export default { id: "a", cases: [], evaluate: { kind: "non_empty" } };

export default { id: "a", prompt: "p", cases: [], evaluate: { kind: "non_empty" } };

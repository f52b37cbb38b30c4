export default { id: "same", cases: [{ id: "b.1", prompt: "p" }], evaluate: { kind: "non_empty" } };

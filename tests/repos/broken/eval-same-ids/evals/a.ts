export default { id: "same", cases: [{ id: "a.1", prompt: "p" }], evaluate: { kind: "non_empty" } };

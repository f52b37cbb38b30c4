export default { id: "b", cases: [{ id: "b.1", prompt: "p" }], evaluate: () => true };

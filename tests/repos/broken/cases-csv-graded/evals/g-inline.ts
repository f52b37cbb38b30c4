export default { id: "g-inline", cases: [{ id: "g.1", prompt: "p" }], evaluate: { kind: "exact" } };

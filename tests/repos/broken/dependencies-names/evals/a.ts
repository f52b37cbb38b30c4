export default { id: "a", prompt: "p", evaluate: { kind: "non_empty" } };

export default { id: "b", prompt: "p", evaluate: { kind: "non_empty", expected: "yes" } };

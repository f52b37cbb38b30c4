export default { id: "a", prompt: "p", tools: ["lookup"], evaluate: { kind: "non_empty" } };

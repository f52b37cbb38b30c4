export default { id: 4, title: "", description: null, systemPrompt: [], tools: "x", prompt: "\u2003", evaluate: { kind: "non_empty" } };

export default { id: "f", prompt: "p", evaluate: { kind: "custom" } };

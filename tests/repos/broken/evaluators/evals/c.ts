export default { id: "c", prompt: "p", evaluate: { kind: "contains" } };

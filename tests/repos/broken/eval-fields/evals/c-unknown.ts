export default { id: "c", sytemPrompt: "s", data: 1, prompt: "p", evaluate: { kind: "non_empty" } };

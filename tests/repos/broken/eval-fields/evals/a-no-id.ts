export default { prompt: "p", evaluate: { kind: "non_empty" } };

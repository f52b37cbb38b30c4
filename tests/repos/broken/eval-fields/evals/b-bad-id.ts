export default { id: "Refund Policy", prompt: "p", evaluate: { kind: "non_empty" } };

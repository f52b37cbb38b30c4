export default { id: "b", evaluate: { kind: "non_empty" } };

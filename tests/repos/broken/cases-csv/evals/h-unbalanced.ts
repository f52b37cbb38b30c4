export default { id: "h-unbalanced", cases: "./h-unbalanced.csv", evaluate: { kind: "non_empty" } };

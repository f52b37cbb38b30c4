export default { id: "i-return", cases: "./i-return.csv", evaluate: { kind: "non_empty" } };

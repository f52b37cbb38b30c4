export default { id: "a-expected", cases: "./a-expected.csv", evaluate: { kind: "contains" } };

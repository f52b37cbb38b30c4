export default { id: "d", cases: "./d.csv", evaluate: { kind: "contains" } };

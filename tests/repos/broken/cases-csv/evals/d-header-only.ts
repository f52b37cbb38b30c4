export default { id: "d-header-only", cases: "./d-header-only.csv", evaluate: { kind: "non_empty" } };

export default { id: "c-empty", cases: "./c-empty.csv", evaluate: { kind: "non_empty" } };

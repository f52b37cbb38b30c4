export default { id: "f", cases: "./f.txt", evaluate: { kind: "non_empty" } };

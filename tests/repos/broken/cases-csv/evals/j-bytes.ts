export default { id: "j-bytes", cases: "./j-bytes.csv", evaluate: { kind: "non_empty" } };

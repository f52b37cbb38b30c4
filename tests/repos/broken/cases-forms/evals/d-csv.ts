export default { id: "d", cases: "./d.csv", evaluate: { kind: "gsm8k", expected: "1" } };

export default { id: "d-kind", cases: "./d.csv", evaluate: { kind: "gsm8k" } };

export default { id: "e-function", cases: "./e.csv", evaluate: () => true };

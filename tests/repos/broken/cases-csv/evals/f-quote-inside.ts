export default { id: "f-quote-inside", cases: "./f-quote-inside.csv", evaluate: { kind: "non_empty" } };

export default { id: "g-after-quote", cases: "./g-after-quote.csv", evaluate: { kind: "non_empty" } };

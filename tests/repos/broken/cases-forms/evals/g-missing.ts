export default { id: "g", cases: "./g.jsonl", evaluate: { kind: "non_empty" } };

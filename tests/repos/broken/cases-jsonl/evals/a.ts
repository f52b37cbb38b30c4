export default { id: "a", cases: "./a.jsonl", evaluate: { kind: "non_empty" } };

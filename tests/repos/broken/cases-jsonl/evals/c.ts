export default { id: "c", cases: "./c.jsonl", evaluate: { kind: "non_empty" } };

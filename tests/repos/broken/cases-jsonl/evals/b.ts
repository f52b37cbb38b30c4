export default { id: "b", cases: "./b.jsonl", evaluate: { kind: "non_empty" } };

export default { id: "i", cases: "/i.jsonl", evaluate: { kind: "non_empty" } };

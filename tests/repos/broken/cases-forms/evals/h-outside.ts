export default { id: "h", cases: "../../h.jsonl", evaluate: { kind: "non_empty" } };

export default { id: "first", title: "First", evaluate: { kind: "non_empty" }, cases: "./first.jsonl" };

export default { id: "second", evaluate: { kind: "contains", expected: "second" }, cases: "../data/second.jsonl" };

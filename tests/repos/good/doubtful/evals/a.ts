export default {
  id: "a",
  evaluate: { kind: "contains", expected: "B" },
  cases: [
    { id: "a.1", prompt: "p" },
    { id: "a.2", prompt: "p" },
    { id: "a.3", prompt: "p", evaluate: { kind: "exact", expected: " yes" } },
  ],
};

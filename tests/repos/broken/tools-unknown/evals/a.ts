export default {
  id: "a",
  tools: ["lookup"],
  evaluate: { kind: "tool_call_syntax", version: 1, alternatives: [{ calls: [{ toolName: "search" }] }] },
  cases: [
    { id: "a.1", prompt: "p" },
    { id: "a.2", prompt: "p" },
    { id: "a.3", prompt: "p", tools: ["search"] },
    { id: "a.4", prompt: "p", tools: [] },
  ],
};

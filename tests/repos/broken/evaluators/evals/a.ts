export default {
  id: "a",
  cases: [
    { id: "a.1", prompt: "p", evaluate: { kind: "exakt", expected: "yes" } },
    { id: "a.2", prompt: "p", evaluate: { kind: "exact" } },
    { id: "a.3", prompt: "p", evaluate: { kind: "contains", expected: "  " } },
    { id: "a.4", prompt: "p", evaluate: { kind: "answer_bank", answers: [] } },
    { id: "a.5", prompt: "p", evaluate: { kind: "answer_bank", answers: ["yes", " "], forbidden: ["no"] } },
    { id: "a.6", prompt: "p", evaluate: { kind: "gsm8k", expected: "1,000" } },
    { id: "a.7", prompt: "p", evaluate: { kind: "gsm8k", expected: 1000 } },
    { id: "a.8", prompt: "p", evaluate: { kind: "tool_call_syntax", alternatives: [] } },
    { id: "a.9", prompt: "p", evaluate: { kind: "tool_call_syntax", version: 1, alternatives: [{ call: [] }] } },
    { id: "a.10", prompt: "p", evaluate: { kind: "custom" } },
    { id: "a.11", prompt: "p", evaluate: {} },
    { id: "a.12", prompt: "p", evaluate: "exact" },
    { id: "a.13", prompt: "p" },
  ],
};

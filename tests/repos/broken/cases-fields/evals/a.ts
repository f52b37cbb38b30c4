export default {
  id: "a",
  evaluate: { kind: "non_empty" },
  cases: [
    { prompt: "p" },
    { id: "a.2" },
    { id: "A.3", prompt: " ", expected: "yes" },
    { id: "a.4", prompt: "p", description: 1, systemPrompt: null, tools: ["x", "x"] },
    "a.5",
    null,
  ],
};

export default {
  id: "one-prompt",
  prompt: "  Name the capital of France.\n",
  systemPrompt: "Be brief.",
  description: "One prompt.",
  evaluate: { kind: "answer_bank", answers: ["Paris"], forbiddenAnswers: [] },
};

import { policyText } from "../lib/policy"

// Inline cases share a system prompt and bring their own declarative checks.
export default {
  id: "return-window",
  title: "Return window",
  systemPrompt: `Answer in one sentence, from this policy only. ${policyText}`,
  evaluate: { kind: "non_empty" },
  cases: [
    {
      id: "return-window.unopened",
      prompt: "How long can I return an unopened kettle?",
      evaluate: { kind: "contains", expected: "30 days" },
    },
    {
      id: "return-window.december",
      prompt: "I bought a sled on 12 December. Until when can I bring it back?",
      evaluate: {
        kind: "answer_bank",
        answers: ["60 days", "sixty days", "two months"],
        forbiddenAnswers: ["within 30 days", "thirty days"],
      },
    },
    {
      id: "return-window.software",
      prompt: "Can I return a game I have opened? Answer only yes or no.",
      evaluate: { kind: "exact", expected: "No" },
    },
  ],
}

import { shared } from "./shared";
import words from "./words.json";

export default {
  id: "inline",
  title: "Inline",
  description: "From the eval.",
  systemPrompt: "From the eval.",
  evaluate: shared,
  cases: [
    { id: "inherits", prompt: "Say yes." },
    {
      id: "overrides",
      prompt: words.prompt,
      description: "From the case.",
      systemPrompt: "From the case.",
      tools: [],
      data: { nested: [1, 2.5, null, "x"] },
      evaluate: { kind: "gsm8k", expected: "41" },
    },
    {
      id: "no-calls",
      prompt: "Call nothing.",
      evaluate: { kind: "tool_call_syntax", version: 1, alternatives: [{ calls: [], extraCalls: "forbid" }] },
    },
  ],
};

// The smallest eval: one prompt, one check. Its case has the eval's id.
export default {
  id: "greeting",
  title: "Greeting",
  systemPrompt: "You answer for a shop's support desk, in one sentence.",
  prompt: "Hello, is anybody there?",
  evaluate: { kind: "non_empty" },
}

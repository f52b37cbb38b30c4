export default {
  id: "a",
  evaluate: { kind: "non_empty" },
  cases: [
    { id: "valid", prompt: "p" },
    { id: "b", prompt: "p" },
  ],
};

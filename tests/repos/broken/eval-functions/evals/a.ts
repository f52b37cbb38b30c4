export default {
  id: "a",
  title: () => "A",
  evaluate: () => true,
  cases: [
    { id: "a.1", prompt: "p", evaluate: () => true },
    { id: "a.2", prompt: "p", data: { check() {} } },
  ],
};

export default {
  name: "T",
  transform: async () => [{ id: "f-locale.1", prompt: "p" }, { id: "f-locale.2", prompt: (1234.5).toLocaleString() }],
};

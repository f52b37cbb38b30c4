export default {
  name: "T",
  transform: async () => [{ id: "a-uuid.1", prompt: "p" }, { id: "a-uuid.2", prompt: crypto.randomUUID() }],
};

export default {
  name: "T",
  transform: async () => [{ id: "d-date.1", prompt: "p" }, { id: "d-date.2", prompt: Date().slice(0, 24) }],
};

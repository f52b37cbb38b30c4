export default {
  name: "T",
  transform: async () => [{ id: "c-year.1", prompt: "p" }, { id: "c-year.2", prompt: `${new Date().getFullYear()}` }],
};

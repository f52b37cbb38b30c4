export default {
  name: "T",
  transform: async () => [{ id: "b-random.1", prompt: "p" }, { id: "b-random.2", prompt: `${Math.random()}` }],
};

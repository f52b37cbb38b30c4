export default {
  name: "T",
  transform: async () => [{ id: "e-local.1", prompt: "p" }, { id: "e-local.2", prompt: `${new Date('2020-01-01T00:00').getTime()}` }],
};

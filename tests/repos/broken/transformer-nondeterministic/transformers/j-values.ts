export default {
  name: "T",
  transform: async () => [{ id: "j-values.1", prompt: "p" }, { id: "j-values.2", prompt: `${crypto.getRandomValues(new Uint8Array(4))}` }],
};

export default {
  name: "T",
  transform: async () => [{ id: "n-process.1", prompt: "p" }, { id: "n-process.2", prompt: (globalThis as any).process.env.HOME }],
};

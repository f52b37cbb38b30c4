export default {
  name: "T",
  transform: async () => [{ id: "h-intl.1", prompt: "p" }, { id: "h-intl.2", prompt: new Intl.DateTimeFormat('en', { timeZone: 'UTC' }).format() }],
};

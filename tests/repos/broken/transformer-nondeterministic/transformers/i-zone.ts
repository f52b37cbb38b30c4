export default {
  name: "T",
  transform: async () => [{ id: "i-zone.1", prompt: "p" }, { id: "i-zone.2", prompt: Intl.DateTimeFormat().resolvedOptions().timeZone }],
};

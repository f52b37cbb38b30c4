export default { name: "I", transform: () => new Promise(() => {}) };

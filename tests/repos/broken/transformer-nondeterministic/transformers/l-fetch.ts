export default {
  name: "T",
  transform: async () => [{ id: "l-fetch.1", prompt: "p" }, { id: "l-fetch.2", prompt: `${await fetch('http://127.0.0.1/')}` }],
};

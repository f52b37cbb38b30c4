export default { id: "a" prompt: "p" };

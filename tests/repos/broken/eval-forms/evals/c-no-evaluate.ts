export default { id: "c", prompt: "p" };

export default { name: "X", transform: () => [{ id: "x", prompt: "p" }] };

export default { name: `T${Math.random()}`, transform: () => [{ id: "o.1", prompt: "p" }] };

export default { name: "T", transform: () => [{ id: 'd.1', prompt: 'p', evaluate: () => true }] };

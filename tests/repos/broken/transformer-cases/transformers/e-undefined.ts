export default { name: "T", transform: () => [{ id: 'e.1', prompt: 'p', description: undefined, data: 1n }] };

export default { name: "T", transform: () => [{ id: 'c.1', prompt: '\ud83d' }] };

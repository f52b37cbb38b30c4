export default { name: "T", transform: () => [{ id: 'g.1', prompt: 'p' }, { id: 'g.1', prompt: 'p' }] };

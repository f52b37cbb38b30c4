export default { name: "T", transform: () => [3, null, { id: 'F', prompt: ' ', promt: 'p' }, { id: 'f.4', prompt: 'p', evaluate: { kind: 'custom' } }] };

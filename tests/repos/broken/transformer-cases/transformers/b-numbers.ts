export default { name: "T", transform: () => [{ id: 'b.1', prompt: 'p' }, { id: 'b.2', prompt: 'p', data: { x: [1, NaN, -Infinity] } }] };

export default { name: "T", transform: () => [{ id: 'h.1', prompt: 'p', data: new Date(0) }, , ] };

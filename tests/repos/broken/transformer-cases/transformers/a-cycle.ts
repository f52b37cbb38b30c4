export default { name: "T", transform: () => (() => { const a: any = { id: 'a.1', prompt: 'p' }; a.data = { a }; return [a]; })() };

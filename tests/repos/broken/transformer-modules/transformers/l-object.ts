export default { name: "L", transform: () => ({ cases: [] }) };

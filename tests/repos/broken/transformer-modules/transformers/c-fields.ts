export default { name: " ", version: 1, transform: [] };

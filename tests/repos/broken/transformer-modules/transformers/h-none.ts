export default { name: "H", transform: () => [] };

export default { name: "J", transform: () => Array.from({ length: 25_001 }, (_, n) => ({ id: `j.${n}`, prompt: "p" })) };

export default { name: "T", transform: () => [1, 2, 3].filter(() => Math.random() > 0.5).map((n) => ({ id: `p.${n}`, prompt: "p" })) };

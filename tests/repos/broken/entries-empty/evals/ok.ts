export default { id: "ok", prompt: "Say yes.", evaluate: { kind: "exact", expected: "yes" } };

export default { id: "e", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "../x.ts#good", sourcePath: "../x.ts" } };

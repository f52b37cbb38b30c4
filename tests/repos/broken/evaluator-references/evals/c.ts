export default { id: "c", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "evaluators/y.ts#good", sourcePath: "evaluators/y.ts" } };

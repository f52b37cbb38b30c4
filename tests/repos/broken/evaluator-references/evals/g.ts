export default { id: "g", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "evaluators/z.ts#good", sourcePath: "evaluators/z.ts" } };

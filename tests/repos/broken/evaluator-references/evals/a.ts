export default { id: "a", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "evaluators/x.ts#missing", sourcePath: "evaluators/x.ts" } };

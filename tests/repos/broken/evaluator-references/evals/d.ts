export default { id: "d", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "good", sourcePath: "evaluators/x.ts" } };

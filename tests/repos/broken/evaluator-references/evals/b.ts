export default { id: "b", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "evaluators/x.ts#text", sourcePath: "evaluators/x.ts" } };

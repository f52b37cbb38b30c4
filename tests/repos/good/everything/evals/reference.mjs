export default {
  id: "reference",
  cases: [{ id: "reference.1", prompt: "Say pear.", data: { word: "pear" } }],
  evaluate: { kind: "custom", evaluatorKey: "evaluators/words.ts#exactly", sourcePath: "evaluators/words.ts" },
};

const wanted = (caseData) => caseData.word;

export default {
  id: "function",
  cases: [{ id: "function.1", prompt: "Say apple.", data: { word: "apple" } }],
  evaluate: async ({ output, caseData }) => ({ passed: output === wanted(caseData) }),
};

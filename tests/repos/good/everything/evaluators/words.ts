export const exactly = {
  evaluate({ output, caseData }: { output: string; caseData: { word: string } }): boolean {
    return output === caseData.word;
  },
};

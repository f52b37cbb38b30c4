interface Hours {
  opens: string;
  closes: string;
}

export default {
  id: "opening-hours",
  title: "Opening hours",
  systemPrompt: 'Answer with JSON alone, for example {"opens":"08:00","closes":"17:30"}.',
  cases: [
    {
      id: "opening-hours.plain",
      prompt: "The library is open from nine in the morning to six in the evening.",
      data: { opens: "09:00", closes: "18:00" },
    },
    {
      id: "opening-hours.half-past",
      prompt: "We open at half past seven and close at noon.",
      data: { opens: "07:30", closes: "12:00" },
    },
  ],
  evaluate({ output, caseData }: { output: string; caseData: Hours }) {
    let answer: Partial<Hours>;
    try {
      answer = JSON.parse(output);
    } catch {
      return { passed: false, message: "the answer is not JSON" };
    }
    const right = [answer.opens === caseData.opens, answer.closes === caseData.closes];
    return { passed: right.every(Boolean), score: right.filter(Boolean).length / 2, details: { answer } };
  },
};

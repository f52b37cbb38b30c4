export default {
  id: "capital",
  title: "Capital of Australia",
  prompt: "Which city is the capital of Australia?",
  evaluate: { kind: "answer_bank", answers: ["Canberra"], forbiddenAnswers: ["Sydney", "Melbourne"] },
};

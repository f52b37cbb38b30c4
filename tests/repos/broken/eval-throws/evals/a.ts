const answers: string[] = [];
export default { id: "a", prompt: answers[0].trim(), evaluate: { kind: "non_empty" } };

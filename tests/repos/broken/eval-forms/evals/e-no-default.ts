export const evaluation = { id: "e", prompt: "p" };

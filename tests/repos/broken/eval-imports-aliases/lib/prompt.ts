export const prompt = "p";

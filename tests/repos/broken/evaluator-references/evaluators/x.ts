export const good = { evaluate: () => true };
export const text = { evaluate: "yes" };

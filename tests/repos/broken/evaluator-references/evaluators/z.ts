export const good = { evaluate: () => true 

export const shared = { kind: "exact", expected: "yes" } as const;

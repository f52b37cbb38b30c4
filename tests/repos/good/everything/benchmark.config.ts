interface Limits {
  maxSteps: number;
  maxOutputTokens: number;
}

const limits: Limits = { maxSteps: 3, maxOutputTokens: 1_000 };

/** Everything this version compiles, in one repository. */
export default {
  protocolVersion: 1,
  title: "Everything, in one place",
  version: "2.0.0-rc.1",
  description: "All forms of cases and evaluators.",
  license: "Apache-2.0",
  homepage: "https://example.org/everything",
  tags: ["all", "forms"],
  defaults: { limits },
  evals: [
    "evals/one-prompt.ts",
    "evals/inline.mts",
    "evals/first.ts",
    "evals/second.ts",
    "evals/function.js",
    "evals/reference.mjs",
  ],
} as const;

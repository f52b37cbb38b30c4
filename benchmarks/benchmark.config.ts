// Both examples as one benchmark, which is what the quickstart runs.
export default {
  protocolVersion: 1,
  title: "Quickstart",
  version: "1.0.0",
  license: "Apache-2.0",
  evals: [
    "support-policy/evals/greeting.ts",
    "support-policy/evals/return-window.ts",
    "support-policy/evals/refund-decision.ts",
    "arithmetic/evals/shopping.ts",
  ],
}

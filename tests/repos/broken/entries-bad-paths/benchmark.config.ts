export default {
  protocolVersion: 1,
  title: "Broken",
  version: "1.0.0",
  evals: [
    "evals/ok.ts",
    "./evals/ok.ts",
    "",
    "evals\\ok.ts",
    "/evals/ok.ts",
    "~/ok.ts",
    "C:/ok.ts",
    "../ok.ts",
    "evals/\0.ts",
    "evals/missing.ts",
    "evals",
    "evals/notes.md",
  ],
};

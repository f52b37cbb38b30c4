export default {
  protocolVersion: 2,
  title: "  ",
  version: "1.0",
  license: "MIT License",
  homepage: "example.org",
  tags: ["a", "b", "a"],
  defaults: { limits: { maxSteps: 0, maxToolCalls: -1, maxOutputTokens: 1.5 } },
};

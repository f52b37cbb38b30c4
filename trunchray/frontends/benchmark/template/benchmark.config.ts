export default {
  protocolVersion: 1,
  title: "My benchmark",
  version: "0.1.0",
  license: "Apache-2.0",
  defaults: { limits: { maxSteps: 4, maxToolCalls: 8, maxOutputTokens: 1_024 } },
};

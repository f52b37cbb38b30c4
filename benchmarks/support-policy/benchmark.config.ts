export default {
  protocolVersion: 1,
  title: "Support policy",
  version: "1.0.0",
  description: "Does a support assistant state a shop's policies and decide on refunds as they demand?",
  license: "Apache-2.0",
  tags: ["support", "example"],
  defaults: { limits: { maxSteps: 1, maxOutputTokens: 1_024 } },
}

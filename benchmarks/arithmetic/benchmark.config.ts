export default {
  protocolVersion: 1,
  title: "Arithmetic",
  version: "1.0.0",
  description: "Word problems with one number as the answer, after four hash marks.",
  license: "Apache-2.0",
  tags: ["math", "example"],
  defaults: { limits: { maxSteps: 1 } },
}

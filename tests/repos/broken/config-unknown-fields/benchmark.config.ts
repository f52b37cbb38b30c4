export default {
  protocolVersion: 1,
  title: "Broken",
  version: "1.0.0",
  licence: "MIT",
  defaults: { limits: { maxStep: 3 }, model: "x" },
};

export default {
  protocolVersion: 1,
  title: "Broken",
  version: "1.0.0",
  evals: [],
};

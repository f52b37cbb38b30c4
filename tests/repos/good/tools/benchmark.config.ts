export default { protocolVersion: 1, title: "Tools", version: "1.0.0" };

export default { protocolVersion: 1, title: process.env.TITLE, version: "1.0.0" };

export default { protocolVersion: 1,, };

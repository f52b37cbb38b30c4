export const config = { protocolVersion: 1 };

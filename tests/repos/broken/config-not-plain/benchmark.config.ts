class Title {}
const loop: unknown[] = [];
loop.push(loop);

export default {
  protocolVersion: 1n,
  title: new Title(),
  version: undefined,
  description: new Date(0),
  tags: loop,
  license: Symbol("MIT"),
  defaults: { limits: { maxSteps: NaN, maxToolCalls: Infinity } },
  get homepage() {
    return "https://example.org";
  },
};

/** Ways out over the network, and over sockets of this machine. An attack that works returns what it got. */

const within = (work, ms = 1000) =>
  Promise.race([work, new Promise((_, reject) => setTimeout(() => reject(new Error("no answer")), ms))]);

const event = (target, good) =>
  within(new Promise((resolve, reject) => {
    target[`on${good}`] = () => resolve(good);
    target.onerror = () => reject(new Error("refused"));
  }));

const emitted = (emitter, good) =>
  within(new Promise((resolve, reject) => {
    emitter.on(good, () => resolve(good));
    emitter.on("error", reject);
  }));

export const network = {
  fetch: async (at) => (await within(fetch(at.url))).status,
  fetch_local_name: async (at) => (await within(fetch(at.url.replace("127.0.0.1", "localhost")))).status,
  fetch_keepalive: async (at) => (await within(fetch(at.url, { method: "POST", body: at.secret, keepalive: true }))).status,
  deno_connect: async (at) => (await Deno.connect({ hostname: "127.0.0.1", port: at.tcp })).close() ?? "connected",
  deno_tls: async (at) => (await within(Deno.connectTls({ hostname: "127.0.0.1", port: at.tcp }))).close(),
  deno_listen: () => Deno.listen({ hostname: "127.0.0.1", port: 0 }).close() ?? "listening",
  deno_serve: async () => (await Deno.serve({ port: 0, onListen() {} }, () => new Response()).shutdown()) ?? "served",
  node_net: async (at) => emitted((await import("node:net")).connect(at.tcp, "127.0.0.1"), "connect"),
  node_http: async (at) => emitted((await import("node:http")).get(at.url), "response"),
  node_http2: async (at) => emitted((await import("node:http2")).connect(at.url), "connect"),
  node_tls: async (at) => emitted((await import("node:tls")).connect(at.tcp, "127.0.0.1"), "connect"),
  node_listen: async () => emitted((await import("node:net")).createServer().listen(0, "127.0.0.1"), "listening"),
  node_udp: async (at) => {
    const socket = (await import("node:dgram")).createSocket("udp4");
    return within(new Promise((resolve, reject) => {
      socket.on("error", reject);
      socket.send("leak", at.udp, "127.0.0.1", (error) => (error ? reject(error) : resolve("sent")));
    }));
  },
  dns_lookup: async () => (await within((await import("node:dns/promises")).lookup("localhost"))).address,
  dns_query: async (at) =>
    within(Deno.resolveDns("leak.example", "A", { nameServer: { ipAddr: "127.0.0.1", port: at.udp } })),
  websocket: (at) => event(new WebSocket(at.url.replace("http", "ws")), "open"),
  websocket_stream: async (at) => (await within(new WebSocketStream(at.url.replace("http", "ws")).opened)).protocol,
  event_source: (at) => event(new EventSource(at.url), "open"),
  quic: async (at) => within(Deno.connectQuic({ hostname: "127.0.0.1", port: at.udp, alpnProtocols: ["h3"] })),
  web_transport: async (at) => within(new WebTransport(`https://127.0.0.1:${at.udp}`).ready),
  import_http: async (at) => Object.keys(await within(import(at.url))),
  import_https: async () => Object.keys(await within(import(["https://esm.sh/", "is-odd?leak=1"].join("")))),
  import_npm: async () => Object.keys(await within(import(["npm:", "is-odd@3.0.1"].join("")))),
  import_jsr: async () => Object.keys(await within(import(["jsr:", "@std/path@1"].join("")))),
  wasm_streaming: async (at) => String(await within(WebAssembly.compileStreaming(fetch(at.url)))),
  inspector: async () => (await import("node:inspector")).open(0, "127.0.0.1") ?? "listening",
  unix_socket: async (at) => emitted((await import("node:net")).connect(at.unix), "connect"),
  unix_socket_deno: async (at) => (await Deno.connect({ transport: "unix", path: at.unix })).close() ?? "connected",
  abstract_socket: async (at) => (await Deno.connect({ transport: "unix", path: `\0${at.abstract}` })).close(),
  vsock: async () => (await Deno.connect({ transport: "vsock", cid: 2, port: 9 })).close(),
};

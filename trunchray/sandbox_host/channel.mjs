/**
 * Frames between Python and a host: a 32-bit big-endian length, then that many bytes. Requests come on stdin, replies
 * leave on a pipe of their own, so nothing that author code prints can be taken for a reply.
 *
 * This module is the only one that uses `Deno`. `open` must be called first; after `closeDoors` no code in the
 * process has `Deno` or any permission.
 */
const encoder = new TextEncoder();
const read = Deno.stdin.readSync.bind(Deno.stdin);
let write;

/** Opens the reply pipe, whose number is the first argument, and gives back the right to open anything else. */
export function open() {
  const pipe = Deno.openSync(`/dev/fd/${Deno.args[0]}`, { write: true });
  Deno.permissions.revokeSync({ name: "write" });
  write = pipe.writeSync.bind(pipe);
}

export function closeDoors() {
  delete globalThis.Deno;
}

/** The next request, or null when Python has closed the pipe. */
export function receive() {
  const header = readExactly(4);
  return header && readExactly(new DataView(header.buffer).getUint32(0));
}

/** A request of two parts: one line of JSON, then raw bytes. */
export function receiveWithHead() {
  const frame = receive();
  return frame && split(frame);
}

export function split(frame) {
  const end = frame.indexOf(10);
  return { head: JSON.parse(new TextDecoder().decode(frame.subarray(0, end))), body: frame.subarray(end + 1) };
}

/**
 * A function whose result yields the requests of two parts that come later, while other work goes on between them. To
 * be made before `closeDoors`.
 */
export function requests() {
  const { readable } = Deno.stdin;
  return async function* later() {
    let rest = new Uint8Array(0);
    for await (const chunk of readable) {
      rest = joined(rest, chunk);
      for (let frame; (frame = firstFrame(rest)); rest = rest.subarray(4 + frame.length)) yield split(frame);
    }
  };
}

export function send(reply) {
  const bytes = typeof reply === "string" ? encoder.encode(reply) : reply;
  const frame = new Uint8Array(4 + bytes.length);
  new DataView(frame.buffer).setUint32(0, bytes.length);
  frame.set(bytes, 4);
  for (let at = 0; at < frame.length;) at += write(frame.subarray(at));
}

/**
 * Answers requests with `handle(request) -> Promise<reply>`, one at a time.
 *
 * Everything hangs on `beforeunload`, which Deno fires when nothing is left to do: the reply leaves only then. So a
 * promise that nobody will settle is noticed at once (`unsettled` is the reply), and work that an answer leaves behind
 * in the background is paid for by its own deadline, never by that of the next request.
 */
export function serve(handle, unsettled) {
  let reply;
  let busy = false;
  addEventListener("unhandledrejection", (event) => event.preventDefault());
  addEventListener("error", (event) => event.preventDefault());
  addEventListener("beforeunload", (event) => {
    if (busy) send(reply ?? unsettled);
    const request = receive();
    busy = request !== null;
    if (!busy) return;
    event.preventDefault();
    reply = undefined;
    handle(request).then((text) => { reply = text; });
  });
}

/** The first frame in `bytes`, when all of it is there. */
function firstFrame(bytes) {
  if (bytes.length < 4) return undefined;
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  return bytes.length < 4 + length ? undefined : bytes.slice(4, 4 + length);
}

function joined(a, b) {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}

function readExactly(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const count = read(bytes.subarray(at));
    if (!count) return null;
    at += count;
  }
  return bytes;
}

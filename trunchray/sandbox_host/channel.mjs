/**
 * Frames between Python and a host: a 32-bit big-endian length, a 32-bit number, then as many bytes. A reply has the
 * number of its request, which nobody can guess; what no request asked for has 0. Requests come on stdin, replies
 * leave on a pipe of their own, so nothing that author code prints can be taken for a reply.
 *
 * This module is the only one that uses `Deno`. `open` must be called first; after `closeDoors` no code in the
 * process has `Deno` or any permission.
 */
const HEADER = 8; // bytes
const BROKEN = 70; // the exit code of a host that somebody tampered with
const encoder = new TextEncoder();
const read = Deno.stdin.readSync.bind(Deno.stdin);
const exit = Deno.exit.bind(Deno);
const complain = Deno.stderr.writeSync.bind(Deno.stderr);
const { addEventListener, removeEventListener, dispatchEvent } = EventTarget.prototype;
const dispatch = dispatchEvent.bind(globalThis);
let write;
let fired; // the `beforeunload` of Deno that is being handled

/** Event listeners of the process; author code has no way to them. */
export const listen = addEventListener.bind(globalThis);
export const unlisten = removeEventListener.bind(globalThis);

// Deno fires its events by this name, which only the global has, and does not mark them as its own.
Object.defineProperty(globalThis, "dispatchEvent", { value: fire, configurable: true });

function fire(event) {
  const before = fired;
  fired = event.type === "beforeunload" && !before ? event : undefined;
  try {
    return dispatch(event);
  } finally {
    fired = before;
  }
}

/** Opens the reply pipe, whose number is the first argument, and gives back the right to open anything else. */
export function open() {
  const pipe = Deno.openSync(`/dev/fd/${Deno.args[0]}`, { write: true });
  Deno.permissions.revokeSync({ name: "write" });
  write = pipe.writeSync.bind(pipe);
}

export function closeDoors() {
  delete globalThis.Deno;
}

/** The next request, `{"number", "body"}`, or null when Python has closed the pipe. */
function receive() {
  const header = readExactly(HEADER);
  if (!header) return null;
  const { length, number } = read32(header);
  const body = readExactly(length);
  return body && { number, body };
}

/** The number of a request, and its two parts: one line of JSON, then raw bytes. */
export function receiveWithHead() {
  const request = receive();
  return request && { number: request.number, ...split(request.body) };
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
      for (let frame; (frame = firstFrame(rest)); rest = rest.subarray(HEADER + frame.length)) yield split(frame);
    }
  };
}

/** `number` is that of the request which this answers. */
export function send(reply, number = 0) {
  const bytes = typeof reply === "string" ? encoder.encode(reply) : reply;
  const frame = new Uint8Array(HEADER + bytes.length);
  const header = new DataView(frame.buffer);
  header.setUint32(0, bytes.length);
  header.setUint32(4, number);
  frame.set(bytes, HEADER);
  for (let at = 0; at < frame.length;) at += write(frame.subarray(at));
}

/**
 * Answers requests with `handle(request) -> Promise<reply>`, one at a time. `prepare` is called before each.
 *
 * Everything hangs on `beforeunload`, which Deno fires when nothing is left to do: the reply leaves only then. So a
 * promise that nobody will settle is noticed at once (`unsettled()` is the reply), and work that an answer leaves behind
 * in the background is paid for by its own deadline, never by that of the next request.
 *
 * Each request has a turn of its own: what comes late for one is never taken for the reply to another. An event that
 * came another way than Deno's ends the process, and so does a failure of the host itself.
 */
export function serve(handle, unsettled, prepare = () => {}) {
  let turn = null;
  mute();
  listen("beforeunload", (event) => {
    if (event !== fired) leave("beforeunload came from the module");
    if (turn) send(turn.reply ?? unsettled(), turn.number);
    prepare();
    turn = next(handle);
    if (turn) event.preventDefault();
  });
}

function next(handle) {
  const request = receive();
  if (!request) return null;
  const turn = { number: request.number, reply: undefined };
  handle(request.body).then((reply) => { turn.reply ??= reply; }, (error) => leave(`the host failed: ${error.stack}`));
  return turn;
}

function leave(reason) {
  complain(encoder.encode(reason));
  exit(BROKEN);
}

/** Keeps errors that nobody handles from ending the process. */
export function mute() {
  listen("unhandledrejection", (event) => event.preventDefault());
  listen("error", (event) => event.preventDefault());
}

/** The first frame in `bytes`, when all of it is there. */
function firstFrame(bytes) {
  if (bytes.length < HEADER) return undefined;
  const { length } = read32(bytes);
  return bytes.length < HEADER + length ? undefined : bytes.slice(HEADER, HEADER + length);
}

function read32(header) {
  const view = new DataView(header.buffer, header.byteOffset);
  return { length: view.getUint32(0), number: view.getUint32(4) };
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

/** Ways from a realm to its host, and from one call to another or to the replies of the process. */

const compile = (maker, source) => maker(source)();
const reach = (thing) => {
  const found = compile(thing.constructor.constructor, "return typeof Deno + typeof process");
  if (found === "undefinedundefined") throw new Error("nothing there");
  return found;
};
const frame = (reply) => {
  const body = new TextEncoder().encode(JSON.stringify(reply));
  const bytes = new Uint8Array(8 + body.length); // the number stays 0: it cannot be known
  new DataView(bytes.buffer).setUint32(0, body.length);
  bytes.set(body, 8);
  return bytes;
};
const FORGED = { passed: true, score: 1, message: "forged", details: null, last: false };

export const realm = {
  function_of_lent_class: () => reach({ constructor: { constructor: URL.constructor } }),
  function_of_lent_function: () => reach({ constructor: { constructor: structuredClone.constructor } }),
  function_of_lent_instance: () => reach(new URL("http://a")),
  function_of_error: () => {
    try {
      new URL("x");
    } catch (error) {
      return reach(error);
    }
  },
  function_of_promise: async () => {
    const promise = crypto.subtle.digest("SHA-256", new Uint8Array(1));
    return reach(promise);
  },
  function_of_async: async () => {
    const { constructor } = Object.getPrototypeOf(Headers.prototype.append);
    return reach({ constructor: { constructor } });
  },
  function_of_event: () =>
    new Promise((resolve, reject) => {
      const target = new EventTarget();
      target.addEventListener("x", (event) => {
        try {
          resolve(reach(event));
        } catch (error) {
          reject(error);
        }
      });
      target.dispatchEvent(new Event("x"));
    }),
  function_of_stream: async () => {
    const { value } = await new Response("x").body.getReader().read();
    return reach(value);
  },
  function_of_clone: () => reach(structuredClone({ a: [1] })),
  function_of_timer: () =>
    new Promise((resolve, reject) => {
      setTimeout(function timer() {
        try {
          resolve(reach(this ?? timer.caller));
        } catch (error) {
          reject(error);
        }
      }, 0);
    }),
  functions_of_the_stack: () => {
    let frames = [];
    Error.prepareStackTrace = (_, sites) => sites;
    try {
      frames = new Error("x").stack;
    } finally {
      Error.prepareStackTrace = undefined;
    }
    const found = [...frames].flatMap((site) => [site.getThis?.(), site.getFunction?.()]).filter(Boolean);
    if (!found.length) throw new Error("frames hold nothing");
    return reach(found.at(-1));
  },
  functions_of_a_host_error: () => {
    let frames = [];
    Error.prepareStackTrace = (_, sites) => sites;
    try {
      new TextDecoder("none");
    } catch (error) {
      frames = error.stack;
    } finally {
      Error.prepareStackTrace = undefined;
    }
    if (typeof frames === "string") throw new Error("only text");
    return reach([...frames].map((site) => site.getFunction?.()).find(Boolean));
  },
  import_in_borrowed_function: async () => {
    const importer = compile(URL.constructor, "return (name) => import(name)");
    return Object.keys(await importer("node:fs")).length;
  },
  eval_indirect: async () => Object.keys(await (0, eval)("import('node:fs')")).length,
  poison_host_object: () => {
    Object.getPrototypeOf(Object.getPrototypeOf(new URL("http://a"))).passed = true;
    const { constructor } = Object.getPrototypeOf(URL);
    constructor.prototype.apply = () => FORGED;
    return "poisoned";
  },
  poison_host_promise: async () => {
    const host = crypto.subtle.digest("SHA-1", new Uint8Array(1)).constructor;
    if (host === Promise) throw new Error("its own");
    host.prototype.then = (resolve) => resolve(["value", FORGED]);
    return "poisoned";
  },
  accessor_of_host_fields: () => {
    const { prototype } = structuredClone({}).constructor;
    Object.defineProperty(prototype, "last", { get: () => false, configurable: true });
    return "defined";
  },
  delete_lent: () => {
    if (!delete URL.prototype.href) throw new Error("kept");
    return "deleted";
  },
  wasm: () => WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])),
  shared_memory: () => new SharedArrayBuffer(8).byteLength,
  shared_memory_of_wasm: () => new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer.byteLength,
  call_after_collection: () => typeof new FinalizationRegistry(() => {}).register,
  channel_to_others: () => new BroadcastChannel("x").close() ?? "opened",
  forge_reply_by_name: () => {
    const pipe = Deno.openSync("/dev/fd/3", { write: true });
    return `${pipe.writeSync(frame(FORGED))} bytes`;
  },
  forge_reply_by_proc: () => `${Deno.openSync("/proc/self/fd/3", { write: true }).writeSync(frame(FORGED))} bytes`,
  forge_reply_by_number: async () => `${(await import("node:fs")).writeSync(3, frame(FORGED))} bytes`,
  forge_reply_on_stdout: async () => `${(await import("node:fs")).writeSync(1, "")} bytes`,
  read_requests: async () => `${(await import("node:fs")).readSync(0, new Uint8Array(0))} bytes`,
  read_requests_of_deno: () => `${Deno.stdin.readSync(new Uint8Array(0))} bytes`,
  core_resources: () => JSON.stringify(Deno[Deno.internal].core.resources()),
  next_request: () => typeof Deno.stdin.readable.getReader().read,
};

/**
 * Looks from inside a realm for a way into its host: walks everything that can be reached, calls every function of the
 * host with a missing `this` and arguments that might tempt it, and looks again at what comes out.
 *
 * Streams are walked, but not called: with such arguments some of them never come to rest.
 */
const STREAM = /Stream|pull|\[\[/;
const KEPT_OF_A_KIND = 12; // every call makes new objects, and a few of each kind tell as much as all
const text = (value) => Object.prototype.toString.call(value);
const isObject = (value) => value !== null && (typeof value === "object" || typeof value === "function");
const isOfHost = (value) => !(value instanceof Object);
const tried = (work) => {
  try {
    return work();
  } catch {
    return undefined;
  }
};
const ownKeys = (value) => tried(() => Reflect.ownKeys(value)) ?? [];
const ownOf = (value, key) => tried(() => Object.getOwnPropertyDescriptor(value, key));
const prototypeOf = (value) => tried(() => Object.getPrototypeOf(value));

class Search {
  found = [];
  calls = 0;
  #seen = new Set();
  #queue = [];
  #kinds = new Map();
  #arguments = [];

  see(value, path) {
    if (!isObject(value) || this.#seen.has(value)) return;
    if (tried(() => /Stream/.test(text(value)) && !Object.hasOwn(value, "constructor"))) return;
    this.#seen.add(value);
    this.#queue.push([value, path]);
    this.#judge(value, path);
  }

  run() {
    const { signal } = new AbortController();
    const event = new Event("beforeunload", { cancelable: true });
    const listener = (given) => this.#heard(given);
    this.#arguments = [
      [], ["beforeunload", listener], ["error", listener], [event], [signal], [1], ["x"], [new Uint8Array(2)],
      [listener], [{}], [[signal]], [null, null],
    ];
    this.see(globalThis, "global");
    for (const made of [
      event, signal, new AbortController(), new Blob(["a"]), new DOMException("a", "DataCloneError"), new EventTarget(),
      new Headers({ a: "b" }), new Request("http://a"), new Response("a"), new URL("http://a/?b=c"), ...frames(),
      AbortSignal.abort(), AbortSignal.any([signal]), AbortSignal.timeout(1),
    ]) this.see(made, text(made));
    for (let next; (next = this.#queue.shift());) this.#visit(...next);
    return { found: this.found, calls: this.calls, seen: this.#seen.size };
  }

  #heard(event) {
    for (const key of ["target", "currentTarget", "srcElement"]) this.see(tried(() => event[key]), `event.${key}`);
    for (const target of tried(() => event.composedPath()) ?? []) this.see(target, "event.composedPath()");
  }

  #judge(value, path) {
    if (value === globalThis) return;
    const keys = ownKeys(value);
    if (keys.includes("globalThis") || keys.includes("Deno")) this.found.push(`${path} is a global`);
    const isProgram = typeof ownOf(value, "pid")?.value === "number" || isObject(ownOf(value, "core")?.value?.ops);
    if (isProgram) this.found.push(`${path} is Deno or process`);
    const compiles = typeof value === "function" && isOfHost(value) && value.name.endsWith("Function");
    if (compiles && tried(() => isObject(value("return this")))) this.found.push(`${path} compiles`);
  }

  #visit(value, path) {
    for (let at = value, depth = 0; at && depth < 8; at = prototypeOf(at), depth++) {
      this.see(at, `${path}.__proto__`);
      for (const key of ownKeys(at)) this.#member(value, ownOf(at, key), `${path}.${String(key)}`);
    }
    if (typeof value === "function" && isOfHost(value) && !STREAM.test(path)) this.#tempt(value, path);
  }

  #member(holder, own, path) {
    if (!own) return;
    this.see(own.value, path);
    this.see(own.get, `get ${path}`);
    this.see(own.set, `set ${path}`);
    if (own.get && isOfHost(own.get)) this.#attempt(() => Reflect.apply(own.get, holder, []), path);
  }

  #tempt(callable, path) {
    for (const given of this.#arguments) {
      for (const missing of [undefined, null]) {
        this.#attempt(() => Reflect.apply(callable, missing, given), `${path}()`);
      }
      this.#attempt(() => Reflect.construct(callable, given), `new ${path}`);
    }
  }

  #attempt(work, path) {
    this.calls++;
    try {
      const made = work();
      this.#came(made, path);
      if (text(made) === "[object Promise]") made.then((value) => this.#came(value, path), (e) => this.#came(e, path));
    } catch (error) {
      this.#came(error, path);
    }
  }

  #came(value, path) {
    if (!isObject(value)) return;
    const kind = prototypeOf(value);
    const count = this.#kinds.get(kind) ?? 0;
    this.#kinds.set(kind, count + 1);
    if (count < KEPT_OF_A_KIND) this.see(value, path);
    else this.#judge(value, path);
  }
}

/** Errors of host and realm, and the frames of their stacks. */
function frames() {
  const before = Error.prepareStackTrace;
  Error.prepareStackTrace = (_error, all) => all;
  try {
    new URL("x");
  } catch (error) {
    return [error, error.stack, new Error().stack].filter(isObject);
  } finally {
    Error.prepareStackTrace = before;
  }
}

export default {
  evaluate({ output }) {
    if (output !== "evil") return { passed: output === "right", message: "honest" };
    const details = new Search().run();
    return { passed: details.found.length === 0, details };
  },
};

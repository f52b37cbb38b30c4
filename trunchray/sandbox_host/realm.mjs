/**
 * A fresh global environment for each piece of work, inside one process.
 *
 * A realm keeps the state of one call from the next. It is not a wall against malice: the process is (it has no
 * permissions). What can be done cheaply against leaks is done all the same: whatever the host lends to realms is
 * frozen with everything reachable from it, no lent function takes the host's global for a missing `this`, that global
 * is frozen and nearly empty, and the host itself cannot compile text (a V8 flag), so a borrowed class gives no way
 * into it.
 */
import vm from "node:vm";
import { hideFrames } from "./drift.mjs";
import { makeWriter } from "./plain.mjs";
import { prelude } from "./prelude.mjs";

const LENT = [
  "AbortController", "AbortSignal", "Blob", "DOMException", "Event", "EventTarget", "Headers", "ReadableStream",
  "Request", "Response", "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream", "TransformStream",
  "URL", "URLSearchParams", "WritableStream", "atob", "btoa", "structuredClone",
];
const EVENT_HOOKS = ["addEventListener", "removeEventListener", "dispatchEvent"];
// Each of these could run code of one realm while another is being served, or share memory with a thread.
const WITHHELD = ["Atomics", "FinalizationRegistry", "SharedArrayBuffer", "WebAssembly"];
const CONSOLE = Object.keys(globalThis.console).filter((name) => typeof globalThis.console[name] === "function");

const { setTimeout: startTimer, clearTimeout: stopTimer, setInterval: startInterval } = globalThis;
const now = performance.now.bind(performance);
const { timeOrigin } = performance;
/** The function whose source text is `source`, to be installed in any number of realms. */
export const compile = (source, filename) => new vm.Script(`"use strict";(${source})`, { filename });
const preludeScript = compile(`(host) => (${prelude})(host, ${makeWriter})`, "prelude.mjs");
const hideFramesScript = compile(hideFrames, "drift.mjs");
keepFromGlobal(EventTarget.prototype, EVENT_HOOKS);
const lent = borrowed();

const MAX_DELAY = 2 ** 31 - 1;

/** The timers of one realm, which end with it. */
class Timers {
  static current = new Timers();
  #running = new Map();
  #last = 0;
  #open = true;

  start(callback, milliseconds, repeat) {
    const delay = milliseconds >= 1 && milliseconds <= MAX_DELAY ? milliseconds : 1; // what Deno does, with a warning
    const id = ++this.#last;
    if (!this.#open) return id;
    const once = () => {
      this.#running.delete(id);
      callback();
    };
    this.#running.set(id, repeat ? startInterval(callback, delay) : startTimer(once, delay));
    return id;
  }
  stop(id) {
    stopTimer(this.#running.get(id)); // the same function clears both kinds
    this.#running.delete(id);
  }
  close() {
    this.#open = false;
    for (const timer of this.#running.values()) stopTimer(timer);
    this.#running.clear();
  }
}

export class Realm {
  #context;
  #timers = new Timers();
  #module;

  constructor() {
    // A global of its own, not an object of ours behind one: that would be asked for every name the author's code uses.
    this.#context = vm.createContext(vm.constants.DONT_CONTEXTIFY, { codeGeneration: { strings: true, wasm: false } });
    Timers.current = this.#timers;
    const timers = this.#timers;
    const host = {
      start: timers.start.bind(timers),
      stop: timers.stop.bind(timers),
      now,
      timeOrigin,
      consoleMethods: CONSOLE,
    };
    this.install(hideFramesScript)();
    const laid = this.install(preludeScript)(host);
    for (const name of WITHHELD) delete this.#context[name];
    Object.assign(this.#context, lent, laid.globals);
    this.write = laid.write;
    this.describe = laid.describe;
    this.evaluate = laid.evaluate;
    this.transform = laid.transform;
  }

  /** What the script of `compile` makes inside this realm: the function itself. */
  install(script) {
    return script.runInContext(this.#context);
  }

  /** Does what can be done for `load` before any of the module runs. Throws the syntax error that it has. */
  link(code, builtins) {
    const module = new vm.SourceTextModule(code, { context: this.#context, identifier: "module.mjs" });
    module.linkRequests(module.moduleRequests.map(({ specifier }) => builtins.module(specifier, this.#context)));
    module.instantiate();
    this.#module = module;
  }

  /** Evaluates the module; its namespace. Throws what the module throws, or the syntax error that it has. */
  async load(code, builtins) {
    if (!this.#module) this.link(code, builtins);
    await this.#module.evaluate();
    return this.#module.namespace;
  }

  /** Ends its timers: a call must not reach into the next one. */
  close() {
    this.#timers.close();
  }
}

const PURE_BUILTINS = [
  "assert", "assert/strict", "buffer", "crypto", "events", "path", "path/posix", "path/win32", "punycode",
  "querystring", "string_decoder", "url", "util", "util/types",
];

/**
 * Built-in modules of Node. They are imported ahead, because importing needs what is taken away before author code
 * runs. They belong to the host and can be changed from inside a realm: a process whose realms have `used` them is
 * not fit for another realm.
 */
export class Builtins {
  #namespaces = new Map();
  used = false;

  async importAll() {
    for (const name of PURE_BUILTINS) await this.#add(name);
  }
  /** Imports what `code` names. Throws when it has a syntax error or asks for something else. */
  async importFor(code) {
    const module = new vm.SourceTextModule(code, { context: vm.createContext(Object.create(null)) });
    for (const specifier of module.dependencySpecifiers) {
      if (!PURE_BUILTINS.includes(bare(specifier))) throw new Error(absent(specifier));
      await this.#add(bare(specifier));
    }
  }

  /** Puts `change(namespace)` in the place of a module, if it was imported. */
  replace(name, change) {
    const namespace = this.#namespaces.get(name);
    if (namespace) this.#namespaces.set(name, change(namespace));
  }

  module(specifier, context) {
    const namespace = this.#namespaces.get(bare(specifier));
    if (!namespace) throw new Error(absent(specifier));
    this.used = true;
    const names = Object.keys(namespace);
    return new vm.SyntheticModule(names, function () {
      for (const name of names) this.setExport(name, namespace[name]);
    }, { context });
  }
  async #add(name) {
    this.#namespaces.set(name, await import(`node:${name}`));
  }
}

function bare(specifier) {
  return specifier.replace(/^node:/, "");
}

function absent(specifier) {
  return `it imports ${JSON.stringify(specifier)}, which the sandbox does not have`;
}

function borrowed() {
  // The real one starts a timer that outlives its realm.
  AbortSignal.timeout = function timeout(milliseconds) {
    const controller = new AbortController();
    const expire = () => controller.abort(new DOMException("Signal timed out.", "TimeoutError"));
    Timers.current.start(expire, milliseconds, false);
    return controller.signal;
  };
  const things = {};
  for (const name of LENT) things[name] = globalThis[name];
  const { subtle, getRandomValues, randomUUID } = crypto;
  things.crypto = {
    subtle,
    getRandomValues: getRandomValues.bind(crypto),
    randomUUID: randomUUID.bind(crypto),
  };
  return things;
}

/**
 * Deno's methods of event targets take the global for a missing `this`. What stands in their place refuses that, and
 * the global itself; the channel has kept the originals.
 */
function keepFromGlobal(prototype, names) {
  const { apply } = Reflect;
  for (const name of names) {
    const native = prototype[name];
    const guarded = {
      [name](...args) {
        if (this === undefined || this === null || this === globalThis) throw new TypeError("Illegal invocation");
        return apply(native, this, args);
      },
    }[name];
    Object.defineProperty(prototype, name, { value: guarded });
  }
}

/**
 * To be called once, before any author code runs. Freezes what is lent and everything that it leads to, the host's own
 * Object.prototype included, and the names of the host's global, of which only the language, what is lent and what Deno
 * fires events by stay.
 */
export function harden() {
  const made = specimens();
  hideFrames({ host: true });
  const languageGlobals = vm.runInNewContext("Object.getOwnPropertyNames(globalThis)");
  const kept = new Set([...languageGlobals, ...LENT, "dispatchEvent"]);
  const values = Object.values(Object.getOwnPropertyDescriptors(globalThis)).map((own) => own.value);
  const classes = values.filter((value) => typeof value === "function");
  for (const name of Reflect.ownKeys(globalThis)) {
    if (typeof name === "string" && !kept.has(name)) Reflect.deleteProperty(globalThis, name);
  }
  forgetMatches();
  const language = languageGlobals.filter((name) => name !== "globalThis").map((name) => globalThis[name]);
  freezeAll([lent, ...language, ...classes], made);
  // Deno itself adds to its global when it leaves, so it stays extensible.
  for (const name of Reflect.ownKeys(globalThis)) {
    const own = Object.getOwnPropertyDescriptor(globalThis, name);
    if (typeof name !== "string" || !own.configurable) continue;
    const fixed = own.get ? {} : { writable: false };
    Object.defineProperty(globalThis, name, { ...fixed, configurable: false });
  }
}

/** What RegExp tells of the last match is a place to leave a text in, also when it is frozen. */
function forgetMatches() {
  for (const [name, own] of Object.entries(Object.getOwnPropertyDescriptors(RegExp))) {
    if (own.get) delete RegExp[name];
  }
}

/** Things of which only an instance leads to the class. */
function specimens() {
  const { readable, writable } = new TransformStream();
  const bytes = new ReadableStream({ type: "bytes" });
  const regular = new ReadableStream();
  const form = new FormData();
  form.append("file", new Blob(["a"]));
  const { signal } = new AbortController();
  signal.onabort = () => {};
  return [
    readable, writable.getWriter(), bytes, bytes.getReader({ mode: "byob" }), regular, regular[Symbol.asyncIterator](),
    ReadableStream.from([1]), new Blob(["a"]), new Blob(["a"]).stream(), form, form.entries(),
    new Headers({ a: "b" }).entries(), new URLSearchParams("a=b").entries(), new Request("http://a"), new Response("a"),
    new Response(new ReadableStream()).clone(), signal, AbortSignal.any([signal]), AbortSignal.abort(),
    new DOMException("a", "DataCloneError"), ...frames(), [].values(), [].values().map(String),
    Iterator.from({ next() {} }), "".matchAll(/a/g), ""[Symbol.iterator](), new Map().entries(), new Set().entries(),
    (async function* () {})(),
  ];
}

/** The frames of a stack. All realms share the class of them. */
function frames() {
  Error.prepareStackTrace = (_error, all) => all;
  const all = new Error().stack;
  delete Error.prepareStackTrace;
  return all;
}

/** `things` themselves may have to change yet, also those that they hold; what they inherit from may not. */
function freezeAll(shared, things) {
  const seen = new Map([[globalThis, true]]);
  const queue = [...shared.map((value) => [value, true]), ...things.map((value) => [value, false])];
  while (queue.length) {
    const [value, reached] = queue.pop();
    if ((typeof value !== "object" && typeof value !== "function") || value === null) continue;
    const fixed = reached || typeof value === "function";
    if (seen.get(value) >= fixed) continue;
    seen.set(value, fixed);
    if (fixed) Object.freeze(value);
    queue.push([Object.getPrototypeOf(value), true]);
    for (const key of Reflect.ownKeys(value)) {
      const own = Object.getOwnPropertyDescriptor(value, key);
      queue.push([own.value, fixed], [own.get, true], [own.set, true]);
    }
  }
}

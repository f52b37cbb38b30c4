/**
 * What is laid into a fresh realm before the author's code runs there: timers, console, and the two functions through
 * which the host calls in. Like the writer, its source text is compiled inside the realm; `host` holds the few
 * functions of the host that it may use, and `makeWriter` is the realm's own copy.
 */
export function prelude(host, makeWriter) {
  const write = makeWriter();
  const { apply } = Reflect;
  const { parse } = JSON;
  const { isArray } = Array;
  const { defineProperty, keys } = Object;
  const { then } = Promise.prototype;
  const { slice, toWellFormed } = String.prototype;
  const { exec } = RegExp.prototype;
  const NativePromise = Promise;
  const text = String;
  const settled = plain(NativePromise.resolve());
  const allocation = /allocation failed|^Invalid array buffer length/;
  let fail = () => {};

  /** A promise whose `then` asks nothing that the author can change for the class of what it returns. */
  function plain(promise) {
    return defineProperty(promise, "constructor", { __proto__: null, value: undefined });
  }

  function guarded(callback, args) {
    return () => {
      try {
        apply(callback, undefined, args);
      } catch (error) {
        fail(error);
      }
    };
  }
  const globals = {
    setTimeout: (callback, delay, ...args) => host.start(guarded(callback, args), +delay, false),
    setInterval: (callback, delay, ...args) => host.start(guarded(callback, args), +delay, true),
    clearTimeout: (id) => host.stop(id),
    clearInterval: (id) => host.stop(id),
    queueMicrotask: (callback) => void apply(then, settled, [guarded(callback, [])]),
    performance: { now: () => host.now(), timeOrigin: host.timeOrigin },
    fetch: async () => {
      throw new TypeError("there is no network in the sandbox");
    },
    console: { __proto__: null },
  };
  const silent = () => {};
  for (let i = 0; i < host.consoleMethods.length; i++) globals.console[host.consoleMethods[i]] = silent;

  /** "TypeError: x is not a function", whatever was thrown. */
  function describe(error) {
    try {
      const known = error !== null && typeof error === "object" && "message" in error;
      const whole = known ? `${text(error.name)}: ${text(error.message)}` : text(error);
      return apply(toWellFormed, apply(slice, whole, [0, 2000]), []);
    } catch {
      return "something that cannot be turned into text";
    }
  }
  function isAllocation(error) {
    try {
      return error.name === "RangeError" && apply(exec, allocation, [error.message]) !== null;
    } catch {
      return false;
    }
  }

  /** Calls `start` and gives what it settles to to `use`; `done` gets (kind, description) when that fails. */
  function settle(start, use, done) {
    const thrown = (error) => done(isAllocation(error) ? "out_of_memory" : "threw", describe(error));
    const settledTo = (value) => {
      try {
        use(value);
      } catch (error) {
        done("unreadable", describe(error));
      }
    };
    fail = thrown; // an error in a timer ends the call, as it would end a process
    const outcome = plain(new NativePromise((resolve) => resolve(start())));
    apply(then, outcome, [settledTo, thrown]);
  }

  /**
   * Calls `holder.evaluate` with the parsed request. `done` gets ("value", written JSON) or (kind, description), and
   * may be called again later, which means nothing.
   */
  function evaluate(holder, request, options, done) {
    settle(() => holder.evaluate(parse(request)), (value) => done("value", write(value, options)), done);
  }

  /**
   * Calls `holder.transform` in the same way. `request` lacks the contents of its sources, which are in `contents`, in
   * the same order. `done` may also get ("no_array", what it is), or ("too_many", length) beyond `maxLength`.
   */
  function transform(holder, request, contents, { maxLength, ...options }, done) {
    const given = parse(request);
    const names = keys(given.sources);
    for (let i = 0; i < names.length; i++) given.sources[names[i]].content = contents[i];
    const use = (value) => {
      if (!isArray(value)) done("no_array", describeKind(value));
      else if (value.length > maxLength) done("too_many", value.length);
      else done("value", write(value, options));
    };
    settle(() => holder.transform(given), use, done);
  }
  function describeKind(value) {
    if (value === undefined || value === null) return `${value}`;
    return typeof value === "object" ? "an object" : `a ${typeof value}`;
  }
  return { globals, write, describe, evaluate, transform };
}

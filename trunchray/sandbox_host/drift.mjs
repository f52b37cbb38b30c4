/**
 * Gives a realm another clock and another source of chance, before the author's code runs there. They are changed, not
 * frozen: code that asks for the time or for a random number gives another result in the next run, and so is found.
 *
 * Like the writer, the source text of this function is compiled inside the realm. `host` has `now()`, in milliseconds,
 * `random()`, from 0 to 1, and `uuid()`; `start` is what the clock shows at first, `uptime` what `performance.now`
 * shows, both in milliseconds. `weakRefs` tells whether WeakRef stays: whether its target is still there depends on
 * memory.
 */
export function drift(host, { start, uptime, weakRefs = false }) {
  const { construct, getOwnPropertyDescriptor, defineProperty } = Reflect;
  const { floor } = Math;
  const begun = host.now();
  const clock = () => floor(start + host.now() - begun);

  const NativeDate = Date;
  const Drifting = new Proxy(NativeDate, {
    construct(target, args, made) {
      return construct(target, args.length ? args : [clock()], made === Drifting ? target : made);
    },
    apply: () => new NativeDate(clock()).toString(),
  });
  NativeDate.now = clock;
  NativeDate.prototype.constructor = Drifting;
  globalThis.Date = Drifting;
  globalThis.performance = { now: () => uptime + host.now() - begun, timeOrigin: start - uptime };

  const format = Intl.DateTimeFormat.prototype;
  const { formatToParts } = format;
  format.formatToParts = function (date = clock()) {
    return formatToParts.call(this, date);
  };
  const { get } = getOwnPropertyDescriptor(format, "format");
  defineProperty(format, "format", {
    configurable: true,
    get() {
      const native = get.call(this);
      return (date = clock()) => native(date);
    },
  });
  if (globalThis.Temporal) {
    const { Now, Instant } = Temporal;
    const zone = Now.timeZoneId;
    Now.instant = () => Instant.fromEpochMilliseconds(clock());
    Now.zonedDateTimeISO = (where = zone()) => Now.instant().toZonedDateTimeISO(where);
    Now.plainDateTimeISO = (where) => Now.zonedDateTimeISO(where).toPlainDateTime();
    Now.plainDateISO = (where) => Now.zonedDateTimeISO(where).toPlainDate();
    Now.plainTimeISO = (where) => Now.zonedDateTimeISO(where).toPlainTime();
  }

  Math.random = () => host.random();
  globalThis.crypto = {
    subtle: globalThis.crypto.subtle,
    randomUUID: () => host.uuid(),
    getRandomValues(view) {
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      for (let i = 0; i < bytes.length; i++) bytes[i] = floor(host.random() * 256);
      return view;
    },
  };
  if (!weakRefs) delete globalThis.WeakRef;
}

/**
 * Leaves our own frames out of stack traces, because they name folders of this machine: of the errors of the realm that
 * it is compiled in, also where the author's code formats them itself. Called directly, with `host`, it does the same to
 * the host's errors, when the author's code is among the callers; nobody else can then format them.
 */
export function hideFrames({ host = false } = {}) {
  const { apply, defineProperty } = Reflect;
  const { filter, some } = Array.prototype;
  const isTheirs = (frame) => frame.getFileName() === "module.mjs";
  const standard = (error, frames) => {
    let stack = `${error}`;
    for (let i = 0; i < frames.length; i++) stack += `\n    at ${frames[i]}`;
    return stack;
  };
  let format = standard;
  const formatTheirs = Object.freeze((error, frames) => {
    const isOurs = host && !apply(some, frames, [isTheirs]);
    return apply(format, Error, [error, isOurs ? frames : apply(filter, frames, [isTheirs])]);
  });
  defineProperty(Error, "prepareStackTrace", {
    configurable: true,
    get: () => formatTheirs,
    set: host ? undefined : (wanted) => {
      format = typeof wanted === "function" && wanted !== formatTheirs ? wanted : standard;
    },
  });
}

/**
 * Gives a realm another clock and another source of chance, before the author's code runs there. They are changed, not
 * frozen: code that asks for the time or for a random number gives another result in the next run, and so is found.
 *
 * Like the writer, the source text of this function is compiled inside the realm. `host` has `now()`, in milliseconds,
 * `random()`, from 0 to 1, and `uuid()`; `start` is what the clock shows at first, `uptime` what `performance.now`
 * shows, both in milliseconds.
 */
export function drift(host, { start, uptime }) {
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
  // Our own frames name folders of this machine.
  Error.prepareStackTrace = (error, frames) => {
    let stack = `${error}`;
    for (const frame of frames) if (frame.getFileName() === "module.mjs") stack += `\n    at ${frame}`;
    return stack;
  };
  delete globalThis.WeakRef; // whether its target is still there depends on memory
}

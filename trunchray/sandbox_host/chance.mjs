/** Chance that repeats: the same seed, the same numbers. */
import { Buffer } from "node:buffer";

const { queueMicrotask } = globalThis;

export class Chance {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** From 0 to 1, without 1 (the generator "mulberry32"). */
  random = () => {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };

  bytes(count) {
    const bytes = Buffer.alloc(count);
    for (let i = 0; i < count; i++) bytes[i] = Math.floor(this.random() * 256);
    return bytes;
  }

  uuid = () => {
    const bytes = this.bytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  };
}

/** `node:crypto` whose random values come from `chance`. Keys it generates are still really random. */
export function seededCrypto(crypto, chance) {
  const answer = (value, callback) => {
    if (typeof callback !== "function") return value;
    queueMicrotask(() => callback(null, value));
  };
  const fill = (view, offset = 0, size = view.byteLength - offset) => {
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(chance.bytes(size), offset);
    return view;
  };
  const randomInt = (min, max, callback) => {
    if (typeof max !== "number") return randomInt(0, min, max);
    return answer(min + Math.floor(chance.random() * (max - min)), callback);
  };
  const randomBytes = (size, callback) => answer(chance.bytes(size), callback);
  const getRandomValues = (view) => fill(view);
  const seeded = {
    randomBytes,
    pseudoRandomBytes: randomBytes,
    randomInt,
    randomUUID: chance.uuid,
    randomFillSync: fill,
    randomFill: (view, ...rest) => answer(fill(view, ...rest.slice(0, -1)), rest.at(-1)),
    getRandomValues,
    webcrypto: { subtle: crypto.webcrypto.subtle, getRandomValues, randomUUID: chance.uuid },
  };
  return { ...crypto, ...seeded, default: { ...crypto.default, ...seeded } };
}

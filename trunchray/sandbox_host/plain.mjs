/**
 * Writes a value as JSON, strictly: only what JSON can carry, and every reason why a value is not that.
 *
 * The source text of this function is compiled inside each realm before the author's code runs there, so that changed
 * globals and prototypes cannot change what it does. It therefore uses nothing from outside itself, and hands out text
 * only.
 */
export function makeWriter() {
  const { getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { apply, ownKeys } = Reflect;
  const { isArray } = Array;
  const { isFinite } = Number;
  const { stringify } = JSON;
  const { isWellFormed, toWellFormed, slice, trim } = String.prototype;
  const { exec } = RegExp.prototype;
  const identifier = /^[A-Za-z_$][\w$]*$/;
  const arrayIndex = /^(0|[1-9]\d*)$/;
  const tooLarge = { tooLarge: true };
  const maxDepth = 100;

  /**
   * `maxChars`: bound of the text; `maxFlaws`: how many are told; `repair`: replace lone surrogates instead of
   * refusing them; `optional`: an undefined member of the root counts as absent; `caseLines`: the root is an array of
   * cases, and is written as one line for each, with the prompts trimmed.
   *
   * Returns JSON texts: `flaws`, an array of `{"path","message"}`, `functions`, an array of paths, and `value`, without
   * the members that have a flaw and without functions (in arrays null stands in their place). `value` is undefined
   * when nothing of it could be written or the text would be longer than `maxChars` (then `tooLarge` is true).
   */
  return function write(root, { maxChars, maxFlaws, repair, optional, caseLines }) {
    const trail = [];
    const ancestors = [];
    let size = 0;
    let flaws = "";
    let flawCount = 0;
    let functions = "";

    function path(depth) {
      let text = "";
      for (let i = 0; i < depth; i++) {
        const key = trail[i];
        if (typeof key === "number") text += `[${key}]`;
        else if (apply(exec, identifier, [key])) text += text ? `.${key}` : key;
        else text += `[${stringify(key)}]`;
      }
      if (text.length > 120) text = `${apply(slice, text, [0, 120])}…`;
      return stringify(apply(toWellFormed, text, []));
    }
    function flaw(depth, message) {
      if (flawCount++ >= maxFlaws) return;
      flaws += `${flaws && ","}{"path":${path(depth)},"message":${stringify(apply(toWellFormed, message, []))}}`;
    }
    function grow(chars) {
      size += chars;
      if (size > maxChars) throw tooLarge;
    }
    function string(value, depth, what) {
      grow(value.length + 2);
      if (!apply(isWellFormed, value, [])) {
        if (!repair) return flaw(depth, `${what} half of a surrogate pair, which is not a character`);
        value = apply(toWellFormed, value, []);
      }
      return stringify(value);
    }
    function number(value, depth) {
      if (!isFinite(value)) return flaw(depth, `is ${value}, which JSON cannot carry`);
      const text = value === 0 ? "0" : `${value}`;
      grow(text.length);
      return text;
    }
    function any(value, depth) {
      if (value === null) {
        grow(4);
        return "null";
      }
      switch (typeof value) {
        case "string": return string(value, depth, "contains");
        case "number": return number(value, depth);
        case "boolean":
          grow(5);
          return value ? "true" : "false";
        case "function":
          functions += (functions && ",") + path(depth);
          return undefined;
        case "undefined": return flaw(depth, "is undefined; leave it out or use null");
        case "object": return container(value, depth);
        default: return flaw(depth, `is a ${typeof value}, which JSON cannot carry`);
      }
    }
    function container(value, depth) {
      if (depth > maxDepth) return flaw(depth, `is nested more than ${maxDepth} levels deep`);
      for (let i = 0; i < depth; i++) {
        if (ancestors[i] === value) return flaw(depth, "refers back to a value that contains it");
      }
      ancestors[depth] = value;
      grow(2);
      return isArray(value) ? array(value, depth) : object(value, depth);
    }
    function array(value, depth) {
      const { length } = value;
      const linewise = caseLines && depth === 0;
      let text = "";
      for (let i = 0; i < length; i++) {
        trail[depth] = i;
        const own = getOwnPropertyDescriptor(value, i);
        if (own === undefined) {
          flaw(depth + 1, "is a hole in the array");
          break; // a hole is often one of millions
        }
        grow(1);
        const separator = i === 0 ? "" : linewise ? "\n" : ",";
        text += `${separator}${member(own, depth) ?? "null"}`;
      }
      named(value, depth);
      return linewise ? text : `[${text}]`;
    }
    function named(value, depth) {
      const keys = ownKeys(value);
      if (keys.length <= value.length + 1) return;
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i];
        if (key === "length" || (typeof key === "string" && apply(exec, arrayIndex, [key]))) continue;
        const name = typeof key === "symbol" ? "of a symbol" : stringify(key);
        return flaw(depth, `is an array with the named property ${name}`);
      }
    }
    function object(value, depth) {
      const prototype = getPrototypeOf(value);
      if (prototype !== null && getPrototypeOf(prototype) !== null) return flaw(depth, kind(value, prototype));
      const keys = ownKeys(value);
      let text = "";
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i];
        if (typeof key === "symbol") {
          flaw(depth, "has a property named by a symbol");
          continue;
        }
        const own = getOwnPropertyDescriptor(value, key);
        if (own === undefined || !own.enumerable) continue;
        trail[depth] = key;
        const name = string(key, depth + 1, "has a name with");
        const absent = optional && depth === 0 && own.value === undefined && !own.get && !own.set;
        if (name === undefined || absent) continue;
        const isPrompt = caseLines && depth === 1 && key === "prompt" && typeof own.value === "string";
        const content = isPrompt ? string(apply(trim, own.value, []), depth + 1, "contains") : member(own, depth);
        if (content !== undefined) text += `${text && ","}${name}:${content}`;
      }
      return `{${text}}`;
    }
    function member(own, depth) {
      if (own.get || own.set) return flaw(depth + 1, "is computed by a getter or setter; write the value");
      return any(own.value, depth + 1);
    }
    function kind(value, prototype) {
      try {
        if (value.then !== undefined && typeof value.then === "function") return "is a promise; export its result";
        const { name } = prototype.constructor;
        if (typeof name === "string" && name) return `is an instance of ${name}, not plain data`;
      } catch {
        // an author's getter failed; the kind is a courtesy
      }
      return "is an instance of a class, not plain data";
    }
    let value;
    let large = false;
    try {
      value = any(root, 0);
    } catch (error) {
      if (error !== tooLarge) throw error;
      large = true;
    }
    return { flaws: `[${flaws}]`, functions: `[${functions}]`, value, tooLarge: large };
  };
}

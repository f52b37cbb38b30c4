/**
 * Calls the tools of one module, inside the realm that the module runs in. Like the writer, the source text of this
 * function is compiled there, so that inputs, results and errors belong to the same realm as the author's code.
 *
 * `write` is the realm's own writer, `globals` what Node code expects to find. What goes out is JSON text; the host
 * sends it on.
 */
export function toolset(write, globals) {
  const { getOwnPropertyDescriptors, hasOwn, values } = Object;
  const { stringify, parse } = JSON;
  const RealmError = Error;
  const MAX_ERROR = 100_000;
  const LIMITS = { maxChars: 1_000_000, maxFlaws: 1, repair: true };
  const SHOWN = ["text", "json", "content", "error-text", "error-json", "execution-denied"];
  Object.assign(globalThis, globals, {
    process: { env: {}, emitWarning() {}, nextTick: (task, ...args) => queueMicrotask(() => task(...args)) },
    setImmediate: (task, ...args) => setTimeout(task, 0, ...args),
    clearImmediate: (id) => clearTimeout(id),
    global: globalThis,
  });

  /** How the AI SDK puts an error into words for the model. */
  function words(error) {
    try {
      if (error === undefined || error === null) return "unknown error";
      if (typeof error === "string") return error;
      const said = error instanceof RealmError || typeof error.message === "string" ? error.message : stringify(error);
      return `${said ?? "unknown error"}`;
    } catch {
      return "something that cannot be turned into text";
    }
  }

  /** `{"input", "output", "shown"}` of a call that worked, or `{"error"}` with `"input"` as far as that was known. */
  async function call(module, { name, text, toolCallId, messages, signal }) {
    const tool = module.tools[name];
    let raw;
    try {
      raw = text.trim() === "" ? {} : harmless(parse(text));
    } catch (error) {
      return refused(name, text, `JSON parsing failed: Text: ${text}.\nError message: ${words(error)}`);
    }
    const { value: input, problem } = await validated(module, tool, raw);
    if (problem !== undefined) return refused(name, raw, problem);
    // Version 7 of the AI SDK passes `context`, those before it `experimental_context`.
    const options = { toolCallId, messages: parse(messages), abortSignal: signal, context: {} };
    try {
      await tool.onInputAvailable?.({ input, ...options });
      const output = await result(tool, input, options);
      return await answer(module, tool, name, toolCallId, input, output);
    } catch (error) {
      return failure(input, words(error));
    }
  }

  /** As the AI SDK parses: names that could change what an object inherits are refused. */
  function harmless(value) {
    if (value === null || typeof value !== "object") return value;
    const made = getOwnPropertyDescriptors(value).constructor?.value;
    const changes = made !== null && typeof made === "object" && hasOwn(made, "prototype");
    if (changes || hasOwn(value, "__proto__")) throw new SyntaxError("Object contains forbidden prototype property");
    values(value).forEach(harmless);
    return value;
  }

  function refused(name, input, problem) {
    return failure(input, `Invalid input for tool ${name}: ${problem}`, true);
  }

  function failure(input, error, invalid = false) {
    const written = lenient(input);
    return `{"input":${written.text ?? "null"},"invalid":${invalid},"error":${stringify(cut(error).toWellFormed())}}`;
  }

  function cut(text) {
    return text.length <= MAX_ERROR ? text : `${text.slice(0, MAX_ERROR)}… (${text.length} characters)`;
  }

  async function validated(module, tool, value) {
    let cause;
    try {
      const schema = module.asSchema(tool.inputSchema);
      if (!schema.validate) return { value };
      const outcome = await schema.validate(value);
      if (outcome.success) return { value: outcome.value };
      cause = outcome.error;
    } catch (error) {
      cause = error;
    }
    const said = words(cause);
    if (cause?.name === "AI_TypeValidationError" && cause.value === value) return { problem: said };
    return { problem: `Type validation failed: Value: ${stringify(value)}.\nError message: ${said}` };
  }

  async function result(tool, input, options) {
    const returned = tool.execute(input, options);
    if (typeof returned?.[Symbol.asyncIterator] !== "function") return returned;
    let last;
    for await (const value of returned) last = value;
    return last;
  }

  async function answer(module, tool, name, toolCallId, input, output) {
    const written = lenient(output);
    if (written.problem) return failure(input, `the result of tool '${name}' ${written.problem}`);
    const shown = tool.toModelOutput ? await chosen(module, tool, { toolCallId, input, output }) : { text: "null" };
    if (shown.problem) return failure(input, `what toModelOutput of tool '${name}' returns ${shown.problem}`);
    return `{"input":${lenient(input).text ?? "null"},"output":${written.text},"shown":${shown.text}}`;
  }

  /** What the tool itself wants the model to see. */
  async function chosen(module, tool, given) {
    const version5 = Number.parseInt(module.version, 10) === 5;
    const made = lenient(await tool.toModelOutput(version5 ? given.output : given));
    if (made.problem) return made;
    const { type } = parse(made.text) ?? {};
    if (SHOWN.includes(type)) return made;
    return { problem: `has the type ${stringify(type) ?? "undefined"}, not one of ${SHOWN.join(", ")}` };
  }

  /** JSON text as JSON.stringify makes it, with whole characters only; `problem` says why there is none. */
  function lenient(value) {
    let text;
    try {
      text = stringify(value) ?? "null";
    } catch (error) {
      return { problem: `cannot be written as JSON: ${words(error)}` };
    }
    if (text.length > LIMITS.maxChars) return { problem: tooLarge(text.length) };
    const written = write(parse(text), LIMITS);
    if (written.tooLarge) return { problem: tooLarge(text.length) };
    const [flaw] = parse(written.flaws);
    return flaw ? { problem: `is not possible: ${flaw.path || "it"} ${flaw.message}` } : { text: written.value };
  }

  function tooLarge(length) {
    return `has ${length.toLocaleString("en-US")} characters of JSON; at most 1,000,000 are allowed`;
  }

  return { call, words };
}

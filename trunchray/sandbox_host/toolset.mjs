/**
 * The tools of one module, inside the realm that the module runs in. Like the writer, the source text of this function
 * is compiled there, so that inputs, results and errors belong to the same realm as the author's code.
 *
 * `write` is the realm's own writer, `globals` what Node code expects to find. What goes out is JSON text; the host
 * sends it on.
 */
export function toolset(write, globals) {
  const { apply, ownKeys } = Reflect;
  const { getPrototypeOf } = Object;
  const { stringify, parse } = JSON;
  const { isArray } = Array;
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

  function major(module) {
    return Number.parseInt(module.version, 10);
  }

  function kind(value) {
    if (value === undefined || value === null) return `${value}`;
    if (isArray(value)) return "an array";
    return typeof value === "object" ? "an object" : `a ${typeof value}`;
  }

  function isPlainObject(value) {
    if (value === null || typeof value !== "object" || isArray(value)) return false;
    const prototype = getPrototypeOf(value);
    return prototype === null || getPrototypeOf(prototype) === null;
  }

  /** What can be said of one tool: `flaws` as pairs of field and message, and what the release keeps when there are none. */
  async function examined(module, tool) {
    if (!isPlainObject(tool)) return { flaws: [["", `must be a tool made by tool() of 'ai', but is ${kind(tool)}`]] };
    const flaws = refusals(tool);
    if (tool.inputSchema === undefined || tool.inputSchema === null) {
      flaws.push(withoutSchema(tool));
      return { flaws };
    }
    try {
      const schema = await module.asSchema(tool.inputSchema).jsonSchema;
      const problem = isPlainObject(schema) ? "" : `gives ${kind(schema)} as its JSON Schema, not an object`;
      const written = write(schema ?? null, { maxChars: 1_000_000, maxFlaws: 20 });
      const [flaw] = parse(written.flaws).filter(({ message }) => !message.startsWith("is undefined"));
      const [callable] = parse(written.functions);
      if (problem) flaws.push(["inputSchema", problem]);
      else if (written.tooLarge) flaws.push(["inputSchema", "gives a JSON Schema of more than 1,000,000 characters"]);
      else if (flaw) flaws.push(["inputSchema", `gives a JSON Schema whose ${flaw.path || "content"} ${flaw.message}`]);
      else if (callable !== undefined) flaws.push(["inputSchema", `gives a JSON Schema whose ${callable} is a function`]);
      else return { flaws, description: tool.description, schema: written.value };
    } catch (error) {
      flaws.push(["inputSchema", unconvertible(tool.inputSchema, error)]);
    }
    return { flaws };
  }

  function refusals({ type, description, execute, needsApproval }) {
    if (type === "dynamic") {
      return [["type", "is 'dynamic', a tool whose schema is unknown before it runs; write it with tool() of 'ai'"]];
    }
    if (type !== undefined && type !== "function") {
      return [["type", `is ${stringify(type)}, a tool that one provider alone has; write it with tool() of 'ai'`]];
    }
    const flaws = [];
    if (typeof description === "string" ? !description.trim() : description === undefined) {
      flaws.push(["description", "is required: say in a sentence what the tool does"]);
    } else if (typeof description !== "string") {
      flaws.push(["description", `must be a string, not ${kind(description)}`]);
    }
    if (typeof execute !== "function") {
      const what = execute === undefined ? "is required" : `must be a function, not ${kind(execute)}`;
      flaws.push(["execute", `${what}; without it nobody can answer the model's calls`]);
    }
    if (needsApproval !== undefined && needsApproval !== false) {
      flaws.push(["needsApproval", "is not possible: nobody is there to approve a call during a run; remove it"]);
    }
    return flaws;
  }

  function withoutSchema(tool) {
    if (tool.parameters !== undefined) {
      return ["parameters", "is the name that version 4 of 'ai' used; rename it to `inputSchema`"];
    }
    return ["inputSchema", "is required; for a tool without arguments write z.object({})"];
  }

  function unconvertible(schema, error) {
    if (typeof schema !== "function" && schema["~standard"] === undefined && ownKeys(schema).every((key) => typeof key === "string")) {
      return "is a bare object; wrap a JSON Schema in jsonSchema() of 'ai', or use zod";
    }
    return `cannot become JSON Schema: ${words(error)}`;
  }

  /** A report on the module as JSON text: `{"flaws", "tools"}`, both in the order of the author's keys. */
  async function examine(module) {
    if (!(major(module) >= 5 && major(module) <= 7)) {
      return stringify({ flaws: [["", "", `uses version ${module.version} of 'ai'; tools need version 5, 6 or 7`]], tools: [] });
    }
    const { tools } = module;
    if (!isPlainObject(tools)) {
      const what = tools === undefined ? "there is no export of this name" : `it is ${kind(tools)}`;
      return stringify({ flaws: [["", "tools", `must be an exported object of tools by their names, but ${what}`]], tools: [] });
    }
    const found = [];
    const flaws = [];
    for (const name of Object.keys(tools)) {
      const { flaws: own, description, schema } = await examined(module, tools[name]);
      for (const [field, message] of own) flaws.push([name, field, message]);
      found.push({ name, description: typeof description === "string" ? description : null, inputSchema: schema === undefined ? null : parse(schema) });
    }
    return stringify({ flaws, tools: found });
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
    const options = { toolCallId, messages: parse(messages), abortSignal: signal, experimental_context: undefined, context: {} };
    try {
      await tool.onInputAvailable?.({ input, ...options });
      const output = await result(tool, input, options);
      return answer(module, tool, name, toolCallId, input, output);
    } catch (error) {
      return failure(input, words(error));
    }
  }

  /** As the AI SDK parses: names that could change what an object inherits are refused. */
  function harmless(value) {
    if (value === null || typeof value !== "object") return value;
    const { constructor } = Object.getOwnPropertyDescriptors(value);
    const changes = constructor?.value !== null && typeof constructor?.value === "object" && Object.hasOwn(constructor.value, "prototype");
    if (Object.hasOwn(value, "__proto__") || changes) throw new SyntaxError("Object contains forbidden prototype property");
    Object.values(value).forEach(harmless);
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
    const wrapped = cause?.name === "AI_TypeValidationError" && cause.value === value;
    return { problem: wrapped ? said : `Type validation failed: Value: ${stringify(value)}.\nError message: ${said}` };
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
    let shown = "null";
    if (tool.toModelOutput) {
      const given = major(module) === 5 ? output : { toolCallId, input, output };
      const made = lenient(await tool.toModelOutput(given));
      if (made.problem) return failure(input, `what toModelOutput of tool '${name}' returns ${made.problem}`);
      const { type } = parse(made.text) ?? {};
      if (!SHOWN.includes(type)) {
        return failure(input, `what toModelOutput of tool '${name}' returns has the type ${stringify(type)}, not one of ${SHOWN.join(", ")}`);
      }
      shown = made.text;
    }
    return `{"input":${lenient(input).text ?? "null"},"output":${written.text},"shown":${shown}}`;
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

  return {
    examine,
    call: (module, request) => apply(call, undefined, [module, request]),
  };
}

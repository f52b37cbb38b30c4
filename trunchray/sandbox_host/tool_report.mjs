/**
 * Looks at the tools of one module, inside the realm that the module runs in; like the writer, the source text of this
 * function is compiled there.
 *
 * `write` is the realm's own writer, `words` puts an error into words. What goes out is JSON text.
 */
export function toolReport(write, words) {
  const { ownKeys } = Reflect;
  const { getPrototypeOf } = Object;
  const { stringify, parse } = JSON;
  const { isArray } = Array;
  const MAX_SCHEMA = 1_000_000;

  function whole(field, message) {
    return stringify({ flaws: [["", field, message]], tools: [] });
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

  /** What can be said of one tool: `flaws` as pairs of field and message, and what the release keeps of it. */
  async function examined(module, tool) {
    if (!isPlainObject(tool)) return { flaws: [["", `must be a tool made by tool() of 'ai', but is ${kind(tool)}`]] };
    const flaws = refusals(tool);
    if (tool.inputSchema === undefined || tool.inputSchema === null) return { flaws: [...flaws, withoutSchema(tool)] };
    const { text, problem } = await converted(module, tool.inputSchema);
    if (problem !== undefined) flaws.push(["inputSchema", problem]);
    return { flaws, description: tool.description, schema: text };
  }

  /** The JSON Schema as JSON text, or why there is none. */
  async function converted(module, inputSchema) {
    let schema;
    try {
      schema = await module.asSchema(inputSchema).jsonSchema;
    } catch (error) {
      return { problem: unconvertible(inputSchema, error) };
    }
    if (!isPlainObject(schema)) return { problem: `gives ${kind(schema)} as its JSON Schema, not an object` };
    const written = write(schema, { maxChars: MAX_SCHEMA, maxFlaws: 20 });
    if (written.tooLarge) return { problem: "gives a JSON Schema of more than 1,000,000 characters" };
    // JSON.stringify leaves out what is undefined, and so did the writer.
    const [flaw] = parse(written.flaws).filter(({ message }) => !message.startsWith("is undefined"));
    if (flaw) return { problem: `gives a JSON Schema whose ${flaw.path || "content"} ${flaw.message}` };
    const [callable] = parse(written.functions);
    if (callable !== undefined) return { problem: `gives a JSON Schema whose ${callable} is a function` };
    return { text: written.value };
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
    const isBare = isPlainObject(schema) && schema["~standard"] === undefined;
    if (isBare && ownKeys(schema).every((key) => typeof key === "string")) {
      return "is a bare object; wrap a JSON Schema in jsonSchema() of 'ai', or use zod";
    }
    return `cannot become JSON Schema: ${words(error)}`;
  }

  /** A report on the module as JSON text: `{"flaws", "tools"}`, both in the order of the author's keys. */
  return async function report(module) {
    const { tools, version } = module;
    const major = Number.parseInt(version, 10);
    if (!(major >= 5 && major <= 7)) return whole("", `uses version ${version} of 'ai'; tools need version 5, 6 or 7`);
    if (!isPlainObject(tools)) {
      const what = tools === undefined ? "there is no export of this name" : `it is ${kind(tools)}`;
      return whole("tools", `must be an exported object of tools by their names, but ${what}`);
    }
    const found = [];
    const flaws = [];
    for (const name of Object.keys(tools)) {
      const { flaws: own, description, schema } = await examined(module, tools[name]);
      for (const [field, message] of own) flaws.push([name, field, message]);
      const said = typeof description === "string" ? description : null;
      found.push({ name, description: said, inputSchema: schema === undefined ? null : parse(schema) });
    }
    return stringify({ flaws, tools: found });
  };
}

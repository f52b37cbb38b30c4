/**
 * Looks at authored modules and data files. Every request is one line of JSON, `{"op", …}`, and raw bytes; every
 * reply is one line of JSON and raw bytes. Nothing is kept between requests. A module that is inspected sees the clock
 * and the chance of its request (`start`, `uptime` and `seed`), and no frame of ours in its stack traces.
 *
 * A reply with `"last": true` means that the process must not be used again.
 */
import { caseLines, indented, readRows } from "./cases.mjs";
import { Chance, seededCrypto } from "./chance.mjs";
import { closeDoors, open, send, serve, split } from "./channel.mjs";
import { drift } from "./drift.mjs";
import { Builtins, compile, harden, Realm } from "./realm.mjs";

const LIMITS = { maxChars: 256_000_000, maxFlaws: 50 };
const decoder = new TextDecoder();
const now = performance.now.bind(performance);
const driftScript = compile(drift, "drift.mjs");
const builtins = new Builtins();

const operations = {
  inspect: ({ head, body }) => look(head, body, written, surround),
  isEvaluator: ({ head, body }) => look(head, body, (_realm, value) => reply(evaluatorFlaws(value))),
  readRows({ body }) {
    const { rows, flaws } = readRows(body);
    return `{"flaws":${flaws}}\n${rows}`;
  },
  indented: ({ body }) => `{}\n${indented(body)}`,
  caseLines({ head, body }) {
    const { evalBytes, hasRows } = head;
    const evaluation = JSON.parse(decoder.decode(body.subarray(0, evalBytes)));
    return `{}\n${caseLines(evaluation, hasRows ? body.subarray(evalBytes) : null, head)}`;
  },
};

open();
await builtins.importAll();
closeDoors();
harden();
send("{}");
serve(
  async (request) => {
    const parts = split(request);
    return operations[parts.head.op](parts);
  },
  () => reply([{ path: "", message: "the module waits for something that will never happen" }]),
);

/** Loads the module of a request in a fresh realm, after `prepare(realm, head)`; `tell(realm, exported)` answers. */
async function look(head, body, tell, prepare = () => {}) {
  const { export: exportName } = head;
  const code = decoder.decode(body);
  const realm = new Realm();
  try {
    prepare(realm, head);
    const namespace = await realm.load(code, builtins);
    if (!Object.hasOwn(namespace, exportName)) return reply([{ path: "", message: missing(exportName, namespace) }]);
    return tell(realm, namespace[exportName]);
  } catch (error) {
    return reply([{ path: "", message: `the module failed while it was loaded: ${realm.describe(error)}` }]);
  } finally {
    realm.close();
  }
}

function surround(realm, { start, uptime, seed }) {
  const chance = new Chance(seed);
  builtins.replace("crypto", (crypto) => seededCrypto(crypto, chance));
  realm.install(driftScript)({ now, random: chance.random, uuid: chance.uuid }, { start, uptime, weakRefs: true });
}

function missing(exportName, namespace) {
  const names = Object.keys(namespace);
  const wanted = exportName === "default" ? "default export" : `export named ${JSON.stringify(exportName)}`;
  return `has no ${wanted}; it exports ${names.length ? names.join(", ").slice(0, 200) : "nothing"}`;
}

function written(realm, value) {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (!isObject) return reply([{ path: "", message: `must be an object, but is ${kind(value)}` }]);
  const { tooLarge, flaws, functions, value: text } = realm.write(value, LIMITS);
  if (tooLarge) return reply([{ path: "", message: `is larger than ${LIMITS.maxChars} characters of JSON` }]);
  return `{"flaws":${flaws},"functions":${functions},"last":${builtins.used}}\n${text ?? "null"}`;
}

function evaluatorFlaws(value) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) {
    return [{ path: "", message: `must be an object with a function "evaluate", but is ${kind(value)}` }];
  }
  if (typeof value.evaluate === "function") return [];
  return [{ path: "evaluate", message: `must be a function, but is ${kind(value.evaluate)}` }];
}

function kind(value) {
  if (value === undefined || value === null) return String(value);
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function reply(flaws) {
  return `${JSON.stringify({ flaws, functions: [], last: builtins.used })}\nnull`;
}

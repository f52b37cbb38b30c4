/**
 * Runs one transformer once.
 *
 * First request: one line of JSON, `{"sources": [{"name","path","sha256"}], "seed", "start", "uptime", "maxCases"}`,
 * and the module's code. Then one request for each source, its bytes. Every reply is one line of JSON and raw bytes:
 * `{"flaws": [{"path","message"}]}`, to the last source also `"name"` and the cases, one line of JSON each. With
 * `"outcome"` and `"detail"`, `transform` was called and failed in that way; paths such as `[3].data.x` are then in
 * what it returned.
 */
import { Chance, seededCrypto } from "./chance.mjs";
import { closeDoors, open, receiveWithHead, send, serve } from "./channel.mjs";
import { drift } from "./drift.mjs";
import { Builtins, compile, harden, Realm } from "./realm.mjs";

const MAX_CHARS = 256_000_000;
const MAX_FLAWS = 50;
const now = performance.now.bind(performance);
const driftScript = compile(drift, "drift.mjs");
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

open();
send("{}");
const first = receiveWithHead();
if (first) await start(first);

async function start({ number, head, body }) {
  const code = decoder.decode(body);
  const builtins = new Builtins();
  const flaws = [];
  try {
    await builtins.importFor(code);
  } catch (error) {
    flaws.push({ path: "", message: `${error.name}: ${error.message}` });
  }
  const chance = new Chance(head.seed);
  builtins.replace("crypto", (crypto) => seededCrypto(crypto, chance));
  closeDoors();
  harden();
  send(refused(flaws), number);
  const contents = [];
  serve(async (request) => {
    contents.push(decoder.decode(request));
    return contents.length < head.sources.length ? refused([]) : await run(head, code, contents, builtins, chance);
  }, () => failed("never_settled", "waits for something that will never happen"));
}

async function run(head, code, contents, builtins, chance) {
  const realm = new Realm();
  try {
    realm.install(driftScript)({ now, random: chance.random, uuid: chance.uuid }, head);
    const namespace = await realm.load(code, builtins);
    const { flaws, name } = readExport(realm, namespace);
    if (flaws.length) return refused(flaws);
    const limits = { maxChars: MAX_CHARS, maxFlaws: MAX_FLAWS, caseLines: true, maxLength: head.maxCases };
    const [kind, outcome] = await new Promise((resolve) => {
      realm.transform(namespace.default, given(head), contents, limits, (...outcome) => resolve(outcome));
    });
    return kind === "value" ? cases(name, outcome) : failed(kind, outcome);
  } catch (error) {
    return refused([{ path: "", message: `the module failed while it was loaded: ${realm.describe(error)}` }]);
  } finally {
    realm.close();
  }
}

/** What `transform` gets, but for the contents of the sources, which may be too large to be written and read again. */
function given({ sources }) {
  const entries = sources.map(({ name, path, sha256 }) => [name, { content: null, path, sha256 }]);
  return JSON.stringify({ sources: Object.fromEntries(entries) });
}

function readExport(realm, namespace) {
  if (!Object.hasOwn(namespace, "default")) return { flaws: [{ path: "", message: "has no default export" }] };
  const exported = realm.write(namespace.default, { maxChars: 10_000, maxFlaws: MAX_FLAWS });
  if (exported.tooLarge) return { flaws: [{ path: "", message: "must be an object `{ name, transform }`" }] };
  const flaws = JSON.parse(exported.flaws);
  const functions = JSON.parse(exported.functions);
  const value = exported.value === undefined ? undefined : JSON.parse(exported.value);
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { flaws: flaws.length ? flaws : [{ path: "", message: "must be an object `{ name, transform }`" }] };
  }
  const known = ["name", "transform"];
  for (const field of [...Object.keys(value), ...functions]) {
    if (!known.includes(field)) flaws.push({ path: field, message: "is not a known field; there are name, transform" });
  }
  if (!functions.includes("transform")) {
    flaws.push({ path: "transform", message: "is required, and must be a function" });
  }
  if (typeof value.name !== "string" || !value.name.trim()) {
    flaws.push({ path: "name", message: "is required, and must be text" });
  }
  return { flaws, name: value.name };
}

/** The returned cases as they were written. */
function cases(name, { tooLarge, flaws: told, functions, value }) {
  const flaws = JSON.parse(told);
  for (const path of JSON.parse(functions).slice(0, MAX_FLAWS)) {
    flaws.push({ path, message: "must not be a function; write plain data" });
  }
  if (tooLarge) flaws.push({ path: "", message: `is larger than ${MAX_CHARS / 1e6} million characters of JSON` });
  if (flaws.length) return failed("not_plain", "", flaws);
  return `${JSON.stringify({ flaws: [], name })}\n${value && `${value}\n`}`;
}

function refused(flaws) {
  return `${JSON.stringify({ flaws })}\n`;
}

function failed(outcome, detail, flaws = []) {
  return `${JSON.stringify({ flaws, outcome, detail })}\n`;
}

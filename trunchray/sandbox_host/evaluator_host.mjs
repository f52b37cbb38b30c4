/**
 * Runs one evaluator module, each call in a fresh realm.
 *
 * First request: `{"export"}` and the module's code; its reply is `{}` or a failure. Every further request is the JSON
 * that `evaluate` gets; its reply is `{"passed","score","message","details"}` or a failure, `{"type","message"}`.
 * Either may carry `"last": true`: this process must not be used again.
 */
import { closeDoors, open, receiveWithHead, send, serve } from "./channel.mjs";
import { Builtins, harden, Realm } from "./realm.mjs";

const MAX_RESULT = 1_000_000; // UTF-8 bytes
const ROOM = 200; // for the reply's own field names
const LIMITS = { maxChars: MAX_RESULT, maxFlaws: 1, repair: true, optional: true };
const FIELDS = ["passed", "score", "message", "details"];

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const builtins = new Builtins();
let waiting; // a realm in which nothing of the module has run yet

open();
send("{}");
const first = receiveWithHead();
if (first) await start(first);

async function start({ number, head, body }) {
  const code = decoder.decode(body);
  let refusal = {};
  try {
    await builtins.importFor(code);
  } catch (error) {
    refusal = failure("bad_module", `${error.name}: ${error.message}`);
  }
  closeDoors();
  harden();
  send(JSON.stringify(refusal), number);
  const unsettled = failure("never_settled", "the evaluator waits for something that will never happen");
  serve(
    async (request) => finish(await call(head.export, code, decoder.decode(request))),
    () => finish(unsettled),
    () => prepare(code),
  );
}

/** Makes the realm of the next call, while Python is busy with the reply to the last one. */
function prepare(code) {
  waiting = new Realm();
  try {
    waiting.link(code, builtins);
  } catch {
    // the call meets the error again, and tells it
  }
}

function failure(type, message) {
  return { type, message };
}

function finish(reply) {
  const bytes = encoder.encode(JSON.stringify({ ...reply, last: builtins.used }));
  return bytes.length <= MAX_RESULT + ROOM ? bytes : finish(oversize());
}

function oversize() {
  return failure("output_too_large", `the result is larger than ${MAX_RESULT} bytes of JSON`);
}

async function call(exportName, code, request) {
  const realm = waiting;
  try {
    const holder = (await realm.load(code, builtins))[exportName];
    if (typeof holder?.evaluate !== "function") {
      return failure("bad_module", `the export ${JSON.stringify(exportName)} has no function "evaluate"`);
    }
    const [kind, outcome] = await new Promise((resolve) => {
      realm.evaluate(holder, request, LIMITS, (...outcome) => resolve(outcome));
    });
    return kind === "value" ? verdict(outcome) : failed(kind, outcome);
  } catch (error) {
    return failure("bad_module", `the module failed while it was loaded: ${realm.describe(error)}`);
  } finally {
    realm.close();
  }
}

function failed(kind, description) {
  if (kind === "unreadable") return failure("invalid_result", `reading the result failed: ${description}`);
  return failure(kind, description);
}

function verdict({ tooLarge, flaws, functions, value }) {
  if (tooLarge) return oversize();
  const [flaw] = JSON.parse(flaws);
  if (flaw) return invalid(`${flaw.path || "it"} ${flaw.message}`);
  const [member] = JSON.parse(functions);
  if (member !== undefined) return invalid(`${member || "it"} is a function`);
  return shaped(JSON.parse(value));
}

function shaped(value) {
  if (typeof value === "boolean") return graded({ passed: value });
  if (value === null || typeof value !== "object" || Array.isArray(value)) return invalid(`it is ${shown(value)}`);
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) return invalid(`it has the unknown field ${shown(unknown)}`);
  return graded(value);
}

function graded({ passed, score = Number(passed), message = null, details = null }) {
  if (typeof passed !== "boolean") return invalid(`passed is ${shown(passed)}, not a boolean`);
  if (!(typeof score === "number" && score >= 0 && score <= 1)) return invalid(`score is ${shown(score)}, not 0 to 1`);
  if (message !== null && typeof message !== "string") return invalid(`message is ${shown(message)}, not text or null`);
  return { passed, score, message, details };
}

function invalid(reason) {
  const allowed = "a boolean or { passed, score?, message?, details? }";
  return failure("invalid_result", `the evaluator must return ${allowed}, but ${reason}`);
}

function shown(value) {
  return value === undefined ? "missing" : JSON.stringify(value).slice(0, 100);
}

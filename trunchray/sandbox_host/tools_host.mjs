/**
 * Runs the tools of one trial: any number of calls at once, and state that lives as long as the process.
 *
 * First request: `{"modules": [bytes, …], "examine"}` and the code of all modules in a row; each module exports
 * `tools`, and `asSchema` and `version` of its `ai`. Its reply is `{"reports"}` when the tools shall be examined, `{}`
 * when they shall be called, or `{"failure"}`. Every further request is a call: `{"id", "module", "name",
 * "toolCallId", "ms"}`, a line feed, the conversation as JSON, a line feed, and the raw arguments; its reply has the
 * same `id`.
 */
import { Buffer } from "node:buffer";
import { closeDoors, listen, mute, open, receiveWithHead, requests, send, unlisten } from "./channel.mjs";
import { Builtins, compile, harden, Realm } from "./realm.mjs";
import { toolReport } from "./tool_report.mjs";
import { toolset } from "./toolset.mjs";

const { setTimeout, clearTimeout } = globalThis;
const toolsetScript = compile(toolset, "toolset.mjs");
const reportScript = compile(toolReport, "tool_report.mjs");
const decoder = new TextDecoder();
const builtins = new Builtins();

mute();
open();
const stream = requests();
send("{}");
const first = receiveWithHead();
if (first) start(first);

async function start({ number, head: { modules, examine }, body }) {
  const codes = cut(body, modules);
  const unfinished = { failure: "the module waits for something that will never happen" };
  const notice = () => send(JSON.stringify(unfinished), number);
  let loaded;
  try {
    for (const code of codes) await builtins.importFor(code);
    closeDoors();
    harden();
    listen("beforeunload", notice); // Deno fires it when nothing is left to do
    loaded = await Promise.all(codes.map(load));
    const reports = examine ? await Promise.all(loaded.map(({ report, namespace }) => report(namespace))) : [];
    unlisten("beforeunload", notice);
    send(examine ? `{"reports":[${reports}]}` : "{}", number);
  } catch (error) {
    unlisten("beforeunload", notice);
    send(JSON.stringify({ failure: error.told ?? `${error.name}: ${error.message}` }), number);
    return;
  }
  for await (const { head, body } of stream()) {
    answer(loaded[head.module], head, decoder.decode(body)).then((reply) => send(reply));
  }
}

function cut(body, sizes) {
  let at = 0;
  return sizes.map((size) => decoder.decode(body.subarray(at, at += size)));
}

async function load(code) {
  const realm = new Realm();
  try {
    const tools = realm.install(toolsetScript)(realm.write, { Buffer });
    const report = realm.install(reportScript)(realm.write, tools.words);
    return { tools, report, namespace: await realm.load(code, builtins) };
  } catch (error) {
    throw { told: `the module failed while it was loaded: ${realm.describe(error)}` };
  }
}

async function answer({ tools, namespace }, { id, name, toolCallId, ms }, body) {
  const end = body.indexOf("\n");
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(new DOMException("The call took too long.", "TimeoutError")), ms);
  const call = { name, text: body.slice(end + 1), toolCallId, messages: body.slice(0, end), signal: stop.signal };
  let reply;
  try {
    reply = await tools.call(namespace, call);
  } catch (error) {
    reply = JSON.stringify({ input: null, error: String(error) });
  }
  clearTimeout(timer);
  return `{"id":${id},"reply":${reply}}`;
}

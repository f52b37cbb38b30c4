/** Runs attacks as a plain program. Each result is a line of JSON on stdout, begun by a character that JSON has not. */
import { files } from "./files.mjs";
import { kernel, sweep } from "./kernel.mjs";
import { network } from "./network.mjs";
import { fatal, processes } from "./processes.mjs";
import { realm } from "./realm.mjs";

const attacks = { ...network, ...files, ...processes, ...fatal, ...realm, ...kernel, sweep };
const say = console.log.bind(console);
const { stringify } = JSON;
addEventListener("error", (event) => event.preventDefault());
addEventListener("unhandledrejection", (event) => event.preventDefault());

const { names, at } = JSON.parse(new TextDecoder().decode(readAll()));
for (const name of names) {
  say(`\x1e${stringify({ begun: name })}`);
  let result;
  try {
    const got = await attacks[name](at);
    result = { name, outcome: "open", evidence: typeof got === "object" ? got : String(got).slice(0, 100) };
  } catch (error) {
    result = { name, outcome: "shut", evidence: `${error?.name}: ${error?.message}`.slice(0, 200) };
  }
  say(`\x1e${stringify(result)}`);
}
Deno.exit(0);

function readAll() {
  const all = [];
  const chunk = new Uint8Array(65536);
  for (let count; (count = Deno.stdin.readSync(chunk)); ) all.push(...chunk.subarray(0, count));
  return new Uint8Array(all);
}

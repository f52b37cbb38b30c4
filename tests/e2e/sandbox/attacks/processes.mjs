/** Ways to other processes, to native code, and to more permission. */

const decode = (bytes) => new TextDecoder().decode(bytes);
const fromWorker = (source, options = {}) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(`data:text/javascript,${encodeURIComponent(source)}`, { type: "module", ...options });
    worker.onmessage = ({ data }) => (data.got ? resolve(data.got) : reject(new Error(data.error)));
    worker.onerror = (error) => reject(new Error(error.message));
    setTimeout(() => reject(new Error("no answer")), 1000);
  });

export const processes = {
  run_deno: () => decode(new Deno.Command("/bin/echo", { args: ["ran"] }).outputSync().stdout),
  run_node: async () => (await import("node:child_process")).execFileSync("/bin/echo", ["ran"]).toString(),
  run_shell: async () => (await import("node:child_process")).execSync("echo ran").toString(),
  run_itself: () => {
    const { code, stderr } = new Deno.Command(Deno.execPath(), { args: ["eval", "1"], env: {} }).outputSync();
    if (code) throw new Error(decode(stderr));
    return "ran";
  },
  signal_parent: (at) => (globalThis.process ?? Deno).kill(at.pid, 0) ?? "reached",
  signal_deno: (at) => Deno.kill(at.pid, "SIGCONT") ?? "reached",
  priority_of_parent: async (at) => (await import("node:os")).setPriority(at.pid, 19) ?? "changed",
  native_library: () => Deno.dlopen("libc.so.6", { getpid: { parameters: [], result: "i32" } }).symbols.getpid(),
  native_addon: (at) => globalThis.process.dlopen({ exports: {} }, at.addon) ?? "loaded",
  internal_binding: () => Object.keys(globalThis.process.binding("fs")).length,
  internal_operations: () => Object.keys(Deno[Deno.internal].core.ops).length,
  ask_permission: async () => {
    const { state } = await Deno.permissions.request({ name: "read" });
    if (state !== "granted") throw new Error(state);
    return state;
  },
  worker_with_more: () =>
    fromWorker(
      "try { postMessage({ got: Deno.readTextFileSync('/etc/passwd').slice(0, 4) }) }" +
        "catch (e) { postMessage({ error: e.message }) }",
      { deno: { permissions: { read: true } } },
    ),
  worker_remote: (at) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(at.url, { type: "module" });
      worker.onmessage = resolve;
      worker.onerror = (error) => reject(new Error(error.message));
      setTimeout(() => reject(new Error("no answer")), 1000);
    }),
  bundle_others: async (at) => (await Deno.bundle({ entrypoints: [at.module] })).outputFiles[0].text(),
  become_another_user: () => globalThis.process.setuid(1) ?? "became",
  set_flags_of_v8: async () => (await import("node:v8")).setFlagsFromString("--allow-natives-syntax") ?? "set",
};

/** One to a process: they may take it along. */
export const fatal = {
  worker: () => fromWorker("postMessage({ got: 'up' })"),
  node_worker: async () => {
    const { Worker } = await import("node:worker_threads");
    const worker = new Worker("require('worker_threads').parentPort.postMessage('up')", { eval: true });
    return new Promise((resolve, reject) => {
      worker.on("message", resolve);
      worker.on("error", reject);
    });
  },
  many_workers: async () => {
    for (let i = 0; i < 200; i++) new Worker("data:text/javascript,for(;;);", { type: "module" });
    await new Promise((resolve) => setTimeout(resolve, 5000));
    return "two hundred";
  },
  fork_bomb: async () => {
    const { spawn } = await import("node:child_process");
    for (let i = 0; i < 50; i++) await new Promise((ran, failed) => spawn("/bin/true").on("exit", ran).on("error", failed));
    return "fifty";
  },
  memory_heap: () => { for (const all = []; ; ) all.push(new Array(1000).fill({})); },
  memory_buffers: () => { for (const all = []; ; ) all.push(new Uint8Array(64 << 20).fill(1)); },
  memory_wasm: () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 });
    for (;;) memory.grow(1024);
  },
  memory_strings: () => { for (let text = "x"; ; ) text = (text + text).split("").join("y"); },
  endless_loop: () => { for (;;); },
  endless_microtasks: async () => { for (;;) await null; },
  atomic_wait: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  output: () => {
    const text = "x".repeat(1 << 20);
    for (let i = 0; i < 16; i++) console.log(text);
    return "16 MB";
  },
  abort: () => globalThis.process.abort(),
  leave: () => globalThis.process.exit(0),
};

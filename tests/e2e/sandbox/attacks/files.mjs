/** Ways to the disk, to the environment, and to what other processes keep in files. */

const nodeFs = () => import("node:fs");
const must = (value, what) => {
  if (!value) throw new Error(`no ${what}`);
  return value;
};

export const files = {
  read_deno: (at) => Deno.readTextFileSync(at.secret),
  read_node: async (at) => (await nodeFs()).readFileSync(at.secret, "utf8"),
  read_promise: async (at) => (await import("node:fs/promises")).readFile(at.secret, "utf8"),
  read_stream: async (at) => {
    let text = "";
    for await (const chunk of (await nodeFs()).createReadStream(at.secret)) text += chunk;
    return text;
  },
  read_link: async (at) => (await nodeFs()).readFileSync(at.link, "utf8"),
  read_folder: (at) => must([...Deno.readDirSync(at.folder)].length, "entries"),
  read_fetch: async (at) => (await fetch(`file://${at.secret}`)).text(),
  read_import_json: async (at) => (await import(`file://${at.json}`, { with: { type: "json" } })).default.secret,
  read_import_text: async (at) => (await import(`file://${at.secret}`, { with: { type: "text" } })).default,
  read_import_module: async (at) => (await import(`file://${at.module}`)).default,
  read_require: async (at) => (await import("node:module")).createRequire(`file://${at.module}`)(at.json).secret,
  read_sqlite: async (at) => new (await import("node:sqlite")).DatabaseSync(at.database, { readOnly: true }).location(),
  read_own_environment: () => Deno.readTextFileSync("/proc/self/environ").length,
  read_other_environment: (at) => Deno.readTextFileSync(`/proc/${at.pid}/environ`).length,
  read_other_memory: (at) => Deno.openSync(`/proc/${at.pid}/mem`).close() ?? "opened",
  read_other_root: (at) => Deno.readTextFileSync(`/proc/${at.pid}/root${at.secret}`),
  read_own_root: (at) => Deno.readTextFileSync(`/proc/self/root${at.secret}`),
  read_own_program: () => Deno.readFileSync(Deno.execPath()).length,
  read_passwords: () => Deno.readTextFileSync("/etc/passwd").length,
  see_that_it_exists: async (at) => must((await nodeFs()).existsSync(at.secret), "file"),
  see_size: (at) => Deno.statSync(at.secret).size,
  write_deno: (at) => Deno.writeTextFileSync(`${at.folder}/written`, "x") ?? "written",
  write_node: async (at) => (await nodeFs()).appendFileSync(at.secret, "x") ?? "written",
  truncate: (at) => Deno.truncateSync(at.victim, 0) ?? "truncated",
  remove: (at) => Deno.removeSync(at.victim) ?? "removed",
  rename: (at) => Deno.renameSync(at.victim, `${at.folder}/renamed`) ?? "renamed",
  make_link: (at) => Deno.symlinkSync(at.secret, `${at.folder}/made-link`) ?? "linked",
  make_hard_link: (at) => Deno.linkSync(at.secret, `${at.folder}/made-hard-link`) ?? "linked",
  make_folder: (at) => Deno.mkdirSync(`${at.folder}/made`) ?? "made",
  make_temporary: () => Deno.makeTempFileSync(),
  change_mode: (at) => Deno.chmodSync(at.secret, 0o777) ?? "changed",
  change_times: (at) => Deno.utimeSync(at.secret, 0, 0) ?? "changed",
  watch: (at) => Deno.watchFs(at.folder).close() ?? "watching",
  write_sqlite: async (at) => {
    const { DatabaseSync } = await import("node:sqlite");
    new DatabaseSync(`${at.folder}/written.db`).exec("create table t(x)");
    return "written";
  },
  vacuum_sqlite: async (at) => {
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(":memory:");
    database.exec("create table t(x)");
    database.exec(`vacuum into '${at.folder}/vacuumed.db'`);
    return "written";
  },
  heap_snapshot: async (at) => (await import("node:v8")).writeHeapSnapshot(`${at.folder}/heap.snap`),
  diagnostic_report: (at) => must(globalThis.process.report.writeReport(`${at.folder}/report.json`), "report"),
  local_storage: () => localStorage.setItem("left", "behind") ?? "stored",
  cache_api: async () => (await caches.open("left")).put("http://left.test/", new Response("behind")) ?? "stored",
  key_value_store: async () => (await Deno.openKv()).close() ?? "opened",
  environment_deno: () => must(Deno.env.get("ATTACKED_SECRET"), "secret"),
  environment_node: async () => must((await import("node:process")).default.env.ATTACKED_SECRET, "secret"),
  environment_all: async () => must(Object.keys((await import("node:process")).default.env).length, "names"),
};

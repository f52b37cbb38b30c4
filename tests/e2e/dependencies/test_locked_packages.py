"""Real packages, installed from lockfiles of every kind, or refused."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.packages import EVAL, HASHES, MANIFEST, VERSIONS, benchmark, package_lock, write
from trunchray.errors import AuthoringError
from trunchray.frontends.benchmark.batch import ExportJob
from trunchray.frontends.benchmark.compiler import compile_benchmark
from trunchray.frontends.benchmark.dependencies.install import install
from trunchray.frontends.benchmark.exports import export
from trunchray.frontends.benchmark.site import locate
from trunchray.frontends.benchmark.staging import staged

CLOSED = "http://127.0.0.1:9/"
PNPM = f"""lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      has:
        specifier: ^1.0.0
        version: {VERSIONS["has"]}
packages:
  function-bind@{VERSIONS["function-bind"]}:
    resolution: {{integrity: {HASHES["function-bind"]}}}
  has@{VERSIONS["has"]}:
    resolution: {{integrity: {HASHES["has"]}}}
snapshots:
  function-bind@{VERSIONS["function-bind"]}: {{}}
  has@{VERSIONS["has"]}:
    dependencies:
      function-bind: {VERSIONS["function-bind"]}
"""
YARN = f"""# yarn lockfile v1


function-bind@^1.1.1:
  version "{VERSIONS["function-bind"]}"
  integrity {HASHES["function-bind"]}

has@^1.0.0:
  version "{VERSIONS["has"]}"
  integrity {HASHES["has"]}
  dependencies:
    function-bind "^1.1.1"
"""
BERRY = f"""# This file is generated

__metadata:
  version: 8
  cacheKey: 10c0

"function-bind@npm:^1.1.1":
  version: {VERSIONS["function-bind"]}
  resolution: "function-bind@npm:{VERSIONS["function-bind"]}"
  checksum: 10c0/aa
  languageName: node
  linkType: hard

"has@npm:^1.0.0":
  version: {VERSIONS["has"]}
  resolution: "has@npm:{VERSIONS["has"]}"
  dependencies:
    function-bind: "npm:^1.1.1"
  checksum: 10c0/bb
  languageName: node
  linkType: hard

"x@workspace:.":
  version: 0.0.0-use.local
  resolution: "x@workspace:."
  dependencies:
    has: "npm:^1.0.0"
  languageName: unknown
  linkType: soft
"""
BUN = f"""{{
  "lockfileVersion": 2,
  "configVersion": 1,
  "workspaces": {{ "": {{ "name": "x", "dependencies": {{ "has": "^1.0.0", }}, }}, }},
  "packages": {{
    "function-bind": ["function-bind@{VERSIONS["function-bind"]}", "", {{}}, "{HASHES["function-bind"]}"],

    "has": ["has@{VERSIONS["has"]}", "", {{ "dependencies": {{ "function-bind": "^1.1.1" }} }}, "{HASHES["has"]}"],
  }}
}}
"""


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("package_lock__json", package_lock(), "package-lock/3"),
        ("pnpm_lock__yaml", PNPM, "pnpm-lock/9"),
        ("yarn__lock", YARN, "yarn/1"),
        ("yarn__lock", BERRY, "yarn-berry/8"),
        ("bun__lock", BUN, "bun/2"),
    ],
    ids=["npm", "pnpm", "yarn", "berry", "bun"],
)
def test_old_versions_are_installed_as_locked(make, cache, name, text, kind):
    """Direct and indirect dependencies get the versions of the lockfile, not the newest ones, and are importable."""
    release = compile_benchmark(make(**{name: text})).release
    assert (release.dependencies.state, release.dependencies.lockfile) == ("locked", kind)
    assert release.dependencies.packages == (PACKAGES if "berry" not in kind else WITHOUT_HASHES)
    assert release.cases.count == 1


PACKAGES = "614511ff378f000f8c702f824cb40e0741c5b4642747e4ec749615277bafe13d"
"""What the locked packages amount to, whichever file locks them."""
WITHOUT_HASHES = "6fd1462d6c127ed543de3d460468a15bbe5fc758d318a18780dcd35666e813ce"
"""The same where the lockfile has no hashes that the registry knows."""


def test_checksums_of_yarn_are_doubted(make, cache):
    """A lockfile that pins versions alone is honoured, and the release says what it does not pin."""
    release = compile_benchmark(make(yarn__lock=BERRY)).release
    assert [line.partition(":")[0] for line in release.warnings if "not what is in them" in line] == ["yarn.lock"]


def test_hashes_in_addresses_are_verified(make, cache):
    """An old yarn.lock has SHA-1 only, behind addresses; it pins packages all the same."""
    good = "a56899d3ea3c9bab874bb9773b7c5ede92f4895d"
    integrity = f"  integrity {HASHES['function-bind']}\n"
    old = YARN.replace(integrity, f'  resolved "{CLOSED}f.tgz#{good}"\n')
    assert compile_benchmark(make(yarn__lock=old)).release.dependencies.state == "locked"
    with pytest.raises(AuthoringError, match=r"yarn.lock: has another hash for function-bind 1.1.1"):
        compile_benchmark(make("tampered", yarn__lock=old.replace(good, "0" * 40)))


def test_the_second_compilation_needs_no_network(make, cache, monkeypatch):
    """What was installed once is used again, even where the registry cannot be reached and as another user."""
    first = compile_benchmark(make(package_lock__json=package_lock()))
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", CLOSED)
    again = compile_benchmark(make("elsewhere", package_lock__json=package_lock()))
    assert again.modules == first.modules
    assert again.release.dependencies == first.release.dependencies
    (entry,) = (cache / "dependencies").glob("*.tar")
    entry.write_bytes(entry.read_bytes()[:-600])
    with pytest.raises(AuthoringError, match=r"package-lock.json: its packages cannot be installed: .*127\.0\.0\.1:9"):
        compile_benchmark(make("third", package_lock__json=package_lock()))


TRANSFORMER = """import has from "has";
export default {
  name: "rows",
  transform: ({ sources }) =>
    sources.rows.content.trim().split("\\n").map((line) => JSON.parse(line)).filter((row) => has(row, "q"))
      .map(({ q }, n) => ({ id: `row.${n}`, prompt: q })),
};
"""


def test_transformers_import_locked_packages(make, cache, monkeypatch):
    """What a transformer imports is installed as well, for a compilation and for an export, once for both."""
    folder = make(package_lock__json=package_lock())
    write(
        folder,
        {
            "transformers/rows.ts": TRANSFORMER,
            "data/rows.jsonl": '{"q":"One?"}\n{"a":1}\n{"q":"Two?"}\n',
            "evals/a.ts": 'export default { id: "a", evaluate: { kind: "non_empty" }, cases: { '
            'transformer: "../transformers/rows.ts", sources: { rows: "../data/rows.jsonl" } } };',
        },
    )
    release = compile_benchmark(folder).release
    assert (release.cases.count, release.dependencies.state) == (2, "locked")
    assert [made.case_count for made in release.transformers] == [2]
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", CLOSED)
    job = ExportJob(id="x", transformer="transformers/rows.ts", sources={"rows": "data/rows.jsonl"}, output="out.jsonl")
    assert export(job, folder).case_count == 2
    assert (folder / "out.jsonl").read_text() == '{"id":"row.0","prompt":"One?"}\n{"id":"row.1","prompt":"Two?"}\n'


def test_two_places_users_time_zones_and_locales_give_one_digest(tmp_path, cache):
    """Nothing of the machine is in a release: two processes in different environments, at once, make the same one."""
    code = "import sys; from trunchray.frontends.benchmark.compiler import compile_benchmark as c; "
    code += "print(c(sys.argv[1]).release.digest)"

    def compiled(number: int, zone: str, language: str) -> str:
        home = tmp_path / f"home{number}"
        home.mkdir()
        folder = benchmark(tmp_path / f"place{number}" / "b", package_lock__json=package_lock())
        own = {"TZ": zone, "LC_ALL": language, "LANG": language, "HOME": str(home), "TMPDIR": str(home)}
        command = [sys.executable, "-c", code, str(folder)]
        return subprocess.run(
            command, env=os.environ | own, capture_output=True, text=True, check=True, cwd=home
        ).stdout.strip()

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(compiled, 1, "Pacific/Kiritimati", "tr_TR.UTF-8")
        two = threads.submit(compiled, 2, "America/Los_Angeles", "C")
        assert one.result() == two.result() != ""


def test_a_tampered_hash_is_refused(make, cache):
    """A lockfile with one wrong hash is named, and nothing is kept of what it installed."""
    tampered = package_lock().replace(HASHES["function-bind"], "sha512-" + "A" * 86 + "==")
    with pytest.raises(AuthoringError) as refused:
        compile_benchmark(make(package_lock__json=tampered))
    assert str(refused.value) == (
        "package-lock.json: has another hash for function-bind 1.1.1 than the npm registry; write the lockfile anew "
        "with its package manager, and commit it"
    )
    assert not list(cache.glob("dependencies/*"))


def test_without_a_lockfile_there_is_a_warning(make, cache):
    """The newest packages are used, and the release says that they are not locked."""
    release = compile_benchmark(make()).release
    assert release.dependencies.state == "unlocked"
    assert any(line.startswith("package.json: has dependencies but no lockfile") for line in release.warnings)


def test_members_of_a_pnpm_workspace_get_their_own_versions(tmp_path, cache):
    """The package.json may lie above the benchmark, and two members may be locked to two versions of one package."""
    digest = "sha512-7XHNxH7qX9xG5mIwxkhumTox/MIRNcOgDrxWsMt2pAr23WHp6MrRlN7FBSFpCpr+oVO0F744iUgR82nJMfG2SA=="
    importer = "  packages/b: {dependencies: {function-bind: {specifier: 'catalog:', version: 1.1.2}}}\n"
    package = f"  function-bind@1.1.2: {{resolution: {{integrity: {digest}}}}}\n"
    lock = PNPM.replace("packages:\n", f"{importer}packages:\n{package}", 1)
    lock = lock.replace("snapshots:\n", "snapshots:\n  function-bind@1.1.2: {}\n")
    root = benchmark(tmp_path / "root", pnpm_lock__yaml=lock)
    write(
        root,
        {
            "pnpm-workspace.yaml": "packages: ['packages/*']\ncatalog: {function-bind: ^1.1.1}\n",
            "packages/b/package.json": json.dumps({"name": "b", "dependencies": {"function-bind": "catalog:"}}),
            "packages/b/deep/bench/evals/a.ts": 'import bind from "function-bind";\n'
            'export default { id: "a", prompt: `${bind.length}`, evaluate: { kind: "non_empty" } };',
        },
    )
    (root / ".git").mkdir()
    release = compile_benchmark(root / "packages" / "b" / "deep" / "bench").release
    assert release.dependencies.lockfile == "pnpm-lock/9"
    assert compile_benchmark(root).release.dependencies.packages == release.dependencies.packages


def test_each_package_gets_the_version_it_was_locked_with(make, cache):
    """Two versions of one package stay apart; another locked version of what is imported is another release."""
    newer = {"version": "1.1.2", "integrity": NEWER}
    lock = json.loads(package_lock())
    lock["packages"][""]["dependencies"]["function-bind"] = "^1.1.2"
    lock["packages"]["node_modules/has/node_modules/function-bind"] = lock["packages"]["node_modules/function-bind"]
    lock["packages"]["node_modules/function-bind"] = newer
    manifest = json.dumps({"name": "x", "dependencies": {"has": "^1.0.0", "function-bind": "^1.1.2"}})
    nested = make(package__json=manifest, package_lock__json=json.dumps(lock))
    with staged(locate(nested)) as stage:
        install(stage)
        modules = stage.root / "node_modules"
        direct = json.loads((modules / "function-bind" / "package.json").read_bytes())
        (inside,) = modules.glob(".deno/has@*/node_modules/function-bind/package.json")
        assert (direct["version"], json.loads(inside.read_bytes())["version"]) == ("1.1.2", "1.1.1")
    del lock["packages"]["node_modules/has/node_modules/function-bind"]
    flat = make("flat", package__json=manifest, package_lock__json=json.dumps(lock))
    assert compile_benchmark(flat).release.digest != compile_benchmark(nested).release.digest


NEWER = "sha512-7XHNxH7qX9xG5mIwxkhumTox/MIRNcOgDrxWsMt2pAr23WHp6MrRlN7FBSFpCpr+oVO0F744iUgR82nJMfG2SA=="


def test_scripts_settings_and_foreign_registries_have_no_effect(make, cache, tmp_path):
    """Lifecycle scripts never run, and neither .npmrc nor the addresses in a lockfile are followed."""
    witness = tmp_path / "ran"
    script = f"touch {witness}"
    manifest = MANIFEST | {"scripts": dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), script)}
    lock = json.loads(package_lock())
    for entry in lock["packages"].values():
        entry["resolved"] = f"{CLOSED}x.tgz"
    settings = f"registry={CLOSED}\n//127.0.0.1:9/:_authToken=${{HOME}}\n"
    files = {"package__json": json.dumps(manifest), "package_lock__json": json.dumps(lock), "__npmrc": settings}
    assert compile_benchmark(make(**files)).release.dependencies.packages == PACKAGES
    assert not witness.exists()


def test_a_folder_of_the_repository_is_a_package(make, cache):
    """A `file:` dependency inside the repository is linked, with what it depends on itself."""
    lock = json.loads(package_lock())
    lock["packages"][""]["dependencies"] = {"own": "file:./vendor/own"}
    lock["packages"]["node_modules/own"] = {"resolved": "vendor/own", "link": True}
    lock["packages"]["vendor/own"] = {"name": "own", "version": "1.0.0", "dependencies": {"has": "^1.0.0"}}
    folder = make(
        package__json=json.dumps({"name": "x", "dependencies": {"own": "file:./vendor/own"}}),
        package_lock__json=json.dumps(lock),
    )
    write(
        folder,
        {
            "vendor/own/package.json": json.dumps({"name": "own", "main": "i.js", "dependencies": {"has": "^1.0.0"}}),
            "vendor/own/i.js": 'module.exports = require("has");',
            "evals/a.ts": EVAL.replace('"has"', '"own"'),
        },
    )
    release = compile_benchmark(folder).release
    assert (release.dependencies.state, release.dependencies.packages) == ("locked", PACKAGES)


def test_nothing_is_installed_without_dependencies(make, cache, monkeypatch):
    """A package.json that names no package, whatever lies beside it, needs no network and no cache."""
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", CLOSED)
    plain = 'export default { id: "a", prompt: "p", evaluate: { kind: "non_empty" } };'
    folder = make(package__json='{"name": "x", "type": "module"}', package_lock__json='{"lockfileVersion": 1}')
    write(folder, {"evals/a.ts": plain})
    assert compile_benchmark(folder).release.dependencies.state == "none"
    assert not (cache / "dependencies").exists()

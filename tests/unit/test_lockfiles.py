"""Lockfiles of every kind: what they pin, and what of them is refused."""

import json

import pytest

from trunchray.errors import AuthoringError
from trunchray.frontends.benchmark.dependencies.comparison import differences
from trunchray.frontends.benchmark.dependencies.deno_lock import write_deno_lock
from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused, Package, Pin
from trunchray.frontends.benchmark.dependencies.lockfiles import lockfile_in, read_lock
from trunchray.frontends.benchmark.dependencies.project import find_project
from trunchray.frontends.benchmark.dependencies.specifier import refusal
from trunchray.frontends.benchmark.dependencies.workspace import is_member
from trunchray.frontends.benchmark.site import Site
from trunchray.frontends.benchmark.staging import staged


def npm(packages: dict, version: int = 3) -> bytes:
    return json.dumps({"lockfileVersion": version, "packages": packages}).encode()


def test_package_lock():
    """Members, aliases, links and nested versions, as Node would find them."""
    lock = read_lock(
        "package-lock.json",
        npm(
            {
                "": {"dependencies": {"z3": "npm:zod@^3"}, "devDependencies": {"zod": "^4"}},
                "packages/b": {"dependencies": {"zod": "^3", "a": "*"}},
                "node_modules/a": {"resolved": "packages/a", "link": True},
                "node_modules/zod": {"version": "4.1.8", "integrity": "sha512-4"},
                "node_modules/z3": {"name": "zod", "version": "3.24.0", "integrity": "sha512-3"},
                "packages/b/node_modules/zod": {"version": "3.25.0", "integrity": "sha512-325 sha1-x"},
            }
        ),
    )
    assert lock.kind == "package-lock/3"
    assert lock.pin("", "zod", "^4") == Pin("zod", "4.1.8", "^4")
    assert lock.pin("", "zod", "^5") is None
    assert lock.pin("", "z3", "npm:zod@^3") == Pin("zod", "3.24.0", "npm:zod@^3")
    assert lock.pin("packages/b", "zod", "^3") == Pin("zod", "3.25.0", "^3")
    assert lock.pin("packages/b", "a", "*") == Pin("a", asked="*", link=True)
    assert lock.packages["zod", "3.25.0"].hashes == {"sha512-325", "sha1-x"}
    assert Pin("zod", "3.24.0").exact("z3") == "npm:zod@3.24.0"


def test_pnpm_lock_6():
    """Without importers the file itself is the only one; peers in brackets are no part of a version."""
    text = """lockfileVersion: '6.0'
dependencies:
  ai: {specifier: ^6, version: 6.0.1(zod@4.1.8)}
packages:
  /ai@6.0.1(zod@4.1.8): {resolution: {integrity: sha512-a}, dependencies: {zod: 4.1.8}}
  /zod@4.1.8: {resolution: {integrity: sha512-z}}
"""
    lock = read_lock("pnpm-lock.yaml", text.encode())
    assert lock.kind == "pnpm-lock/6"
    assert lock.pin("", "ai", "^6") == Pin("ai", "6.0.1", "^6")
    assert set(lock.packages) == {("ai", "6.0.1"), ("zod", "4.1.8")}
    assert lock.packages["ai", "6.0.1"].edges == {"zod": ("zod", "4.1.8")}


def test_yarn_berry():
    """Ranges that resolutions replaced find the only entry of their name, and Yarn's own patches are left out."""
    text = """# generated
__metadata:
  version: 8

"function-bind@npm:1.1.1":
  version: 1.1.1
  resolution: "function-bind@npm:1.1.1"
  checksum: 10c0/aa

"has@npm:^1.0.0, has@npm:^1.0.1":
  version: 1.0.3
  resolution: "has@npm:1.0.3"
  dependencies:
    function-bind: "npm:^1.1.1"
  checksum: 10c0/bb

"typescript@npm:^5":
  version: 5.0.0
  resolution: "typescript@npm:5.0.0"
  conditions: os=linux

"typescript@patch:typescript@npm%3A^5#optional!builtin<compat/typescript>":
  version: 5.0.0
  resolution: "typescript@patch:typescript@npm%3A5.0.0#optional!builtin<compat/typescript>::version=5.0.0"

"x@workspace:.":
  version: 0.0.0-use.local
  resolution: "x@workspace:."
  dependencies:
    has: "npm:^1.0.0"
"""
    lock = read_lock("yarn.lock", text.encode())
    assert lock.kind == "yarn-berry/8"
    assert lock.pin("", "has", "^1.0.0") == Pin("has", "1.0.3", "^1.0.0")
    assert lock.packages["has", "1.0.3"].edges == {"function-bind": ("function-bind", "1.1.1")}
    assert lock.packages["typescript", "5.0.0"] == Package(os=("linux",))
    assert not lock.hashed


LOCKED = {"": {"dependencies": {"x": "1"}}}
LAUGHS = b"a0: &a0 [x, x]\n" + b"".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n".encode() for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("package-lock.json", npm({}, 1), "has lockfileVersion 1, and only 2 and 3 are honoured; run `npm install"),
        ("package-lock.json", npm({"": {"dependencies": {"x": "github:a/b"}}}), "'x' comes from git"),
        ("package-lock.json", npm({"node_modules/x": {"resolved": "git+ssh://h/x"}}), "'x' comes from git"),
        ("package-lock.json", npm({"node_modules/@a/x": {"version": "1.0.0"}}), "does not pin the content of '@a/x'"),
        ("package-lock.json", npm({"/a": {"dependencies": {"x": "1"}}}), "has a member '/a', which lies outside"),
        ("package-lock.json", npm({"a\0b": {}}), r"has a member 'a\x00b', which cannot be a folder"),
        ("package-lock.json", npm({"node_modules/x/" * 400: {}}), "has a folder of 6,000 characters"),
        (
            "package-lock.json",
            npm(LOCKED | {"node_modules/x": {"version": 1, "integrity": "sha512-x"}}),
            "has 'x' in version '1', which cannot be one",
        ),
        (
            "package-lock.json",
            npm(LOCKED | {"node_modules/x": {"version": "npm:y@1.0.0", "integrity": "sha512-x"}}),
            "has 'x' in version 'npm:y@1.0.0', which cannot be one",
        ),
        ("pnpm-lock.yaml", b"lockfileVersion: '9.0'\nimporters: {1: {}}", "has a member '1', which cannot be a folder"),
        ("pnpm-lock.yaml", LAUGHS + b"lockfileVersion: *a8", "its aliases stand for millions of values; write it anew"),
        ("pnpm-lock.yaml", b"lockfileVersion: &a [*a]", "is nested too deeply; write it anew"),
        (
            "deno.lock",
            b'{"version": "5", "npm": {"x@1.0.0": {"integrity": "sha512-x", "tarball": "https://h/x.tgz"}}}',
            "'x@1.0.0' does not come from the registry",
        ),
        ("package-lock.json", b"{", "has not the form of a lockfile; write it anew"),
        ("package-lock.json", b"[]", "has not the form of a lockfile"),
        ("pnpm-lock.yaml", b"lockfileVersion: 5.4", "has lockfileVersion 5.4, and only 6.0 and 9.0 are honoured"),
        ("pnpm-lock.yaml", b"lockfileVersion: '9.0'\npatchedDependencies: {x@1.0.0: {path: p}}", "patches x@1.0.0"),
        (
            "pnpm-lock.yaml",
            b"lockfileVersion: '9.0'\npackages: {'x@https://h/t': {resolution: {tarball: t}}}",
            "'x@https://h/t' does not come from the registry",
        ),
        ("yarn.lock", b'"x@https://h/x.tgz":\n  version "1.0.0"\n', "'x' comes from a web address"),
        ("yarn.lock", b'#\n__metadata:\n  version: 8\n"x@git@h:x":\n  resolution: "x@git@h:x"\n', "'x' comes from git"),
        ("bun.lock", b'{"lockfileVersion": 0}', "has lockfileVersion 0, and only 1 and 2 are honoured"),
        (
            "bun.lock",
            b'{"lockfileVersion": 1, "patchedDependencies": {"x": "p"},}',
            "patches x, which is not supported",
        ),
        (
            "bun.lock",
            b'{"lockfileVersion": 1, "packages": {"x": ["x@github:a/b#c"]}}',
            "'x@github:a/b#c' does not come from the registry",
        ),
        (
            "package-lock.json",
            npm({"node_modules/x": {"version": "1.0.0", "integrity": "sha256-x"}}),
            "does not pin the content of 'x', which has no integrity of SHA-512 or SHA-1; remove the lockfile",
        ),
        (
            "pnpm-lock.yaml",
            b"lockfileVersion: '9.0'\npackages: {x@1.0.0: {resolution: {tarball: t}}}",
            "has no integrity of SHA-512 or SHA-1; remove the lockfile and `node_modules`, and make it again with pnpm",
        ),
        ("pnpm-lock.yaml", b"lockfileVersion: '9.0'\nimporters: {../x: {}}", "has a member '../x', which lies outside"),
        (
            "pnpm-lock.yaml",
            b"lockfileVersion: '9.0'\npackages: {x@1.0.0: {resolution: {type: git, commit: c}}}",
            "'x@1.0.0' does not come from the registry",
        ),
        ("yarn.lock", b'x@^1:\n  version "1.0.0"\n  resolved "https://h/x.tgz"\n', "make it again with yarn"),
        (
            "yarn.lock",
            b'#\n__metadata:\n  version: 8\n"x@npm:^1":\n  version: 1.0.0\n  resolution: "x@npm:1.0.0"\n',
            "does not pin the content of 'x', which has no checksum; remove the lockfile",
        ),
        ("bun.lock", b'{"lockfileVersion": 1, "packages": {"x": ["x@1.0.0"]}}', "make it again with bun"),
        ("deno.lock", b'{"version": "5", "npm": {"x@1.0.0": {}}}', "make it again with deno"),
        (
            "package-lock.json",
            npm({"node_modules/x": {"name": "../x", "version": "1.0.0", "integrity": "sha512-x"}}),
            "holds '../x', which cannot be a package",
        ),
        ("package-lock.json", npm({"/etc": {}}), "has a member '/etc', which lies outside of its folder"),
        ("bun.lockb", b"\0", "is a binary lockfile; run `bun install --save-text-lockfile`"),
        ("deno.lock", b'{"version": "3"}', "has version '3', and only 4 and 5 are honoured"),
        ("deno.lock", b'{"version": "5", "jsr": {"@std/x@1": {}}}', "holds modules of 'jsr'"),
    ],
)
def test_what_is_not_honoured_is_refused(name, content, message):
    """Never a newer version in silence: each kind of file that cannot be honoured says why and what to do."""
    with pytest.raises(LockRefused) as refused:
        read_lock(name, content)
    assert message in str(refused.value)


def test_yarn_lock_with_hashes_in_addresses():
    """Where old versions of Yarn have no integrity, the SHA-1 in the address pins a package."""
    lock = read_lock("yarn.lock", b'x@^1:\n  version "1.0.0"\n  resolved "https://h/x.tgz#' + b"0" * 40 + b'"\n')
    assert lock.packages["x", "1.0.0"].hashes == {"sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="}


def test_several_lockfiles_are_refused(tmp_path):
    """Which of two lockfiles holds cannot be known; only Deno's own gives way to any other."""
    (tmp_path / "package-lock.json").touch()
    (tmp_path / "deno.lock").touch()
    assert lockfile_in(tmp_path) == "package-lock.json"
    (tmp_path / "yarn.lock").touch()
    with pytest.raises(LockRefused, match=r"stands beside yarn\.lock; keep the lockfile you use"):
        lockfile_in(tmp_path)


def test_every_difference_is_named():
    """Another version, hash or import, and a package the lock does not have; hashes that cannot be compared agree."""
    a, b = Package(frozenset({"sha512-a"}), {"b": ("b", "1")}), Package(frozenset({"sha1-b"}))
    lock = Lock("x/1", {("a", "1"): a, ("b", "1"): b})
    same = {("a", "1"): a, ("b", "1"): Package(frozenset({"sha512-b"}))}
    assert list(differences(lock, Lock("deno/5", same))) == []
    other = {
        ("a", "1"): Package(frozenset({"sha512-a"}), {"b": ("b", "2")}),
        ("b", "2"): Package(),
        ("c", "1"): Package(),
    }
    assert list(differences(lock, Lock("deno/5", other))) == [
        "gives a 1 the package b 1, but b 2 would be installed for it",
        "has b 1, but 2 would be installed",
        "has c not at all, but 1 would be installed",
    ]
    tampered = {("a", "1"): Package(frozenset({"sha512-z"}))}
    assert list(differences(lock, Lock("deno/5", tampered))) == ["has another hash for a 1 than the npm registry"]


TREES = {
    "package-lock.json": npm(
        {
            "": {"dependencies": {"a": "^1", "b": "^2"}},
            "node_modules/a": {
                "integrity": "sha512-x",
                "version": "1.0.0",
                "optionalDependencies": {"b": "^1", "n": "npm:b@^2"},
            },
            "node_modules/a/node_modules/b": {"integrity": "sha512-x", "version": "1.0.0", "os": ["linux"]},
            "node_modules/a/node_modules/n": {"name": "b", "integrity": "sha512-x", "version": "2.0.0"},
            "node_modules/b": {"integrity": "sha512-x", "version": "2.0.0"},
        }
    ),
    "pnpm-lock.yaml": b"""lockfileVersion: '9.0'
importers: {.: {dependencies: {a: {specifier: ^1, version: 1.0.0}, b: {specifier: ^2, version: 2.0.0}}}}
packages:
  a@1.0.0: {resolution: {integrity: sha512-x}}
  b@1.0.0: {resolution: {integrity: sha512-x}, os: [linux]}
  b@2.0.0: {resolution: {integrity: sha512-x}}
snapshots:
  a@1.0.0: {optionalDependencies: {b: 1.0.0, n: b@2.0.0}}
  b@1.0.0: {}
  b@2.0.0: {}
""",
    "bun.lock": b"""{"lockfileVersion": 1, "workspaces": {"": {"dependencies": {"a": "^1", "b": "^2"}}}, "packages": {
  "a": ["a@1.0.0", "", {"optionalDependencies": {"b": "^1", "n": "npm:b@^2"}}, "sha512-x"],
  "b": ["b@2.0.0", "", {}, "sha512-x"],
  "a/b": ["b@1.0.0", "", {"os": "linux"}, "sha512-x"],
  "a/n": ["b@2.0.0", "", {}, "sha512-x"],
}}""",
}


@pytest.mark.parametrize("name", TREES)
def test_what_packages_import_is_as_locked(name):
    """Two versions of one package and an alias stay apart, in the lock and in what Deno is given."""
    lock = read_lock(name, TREES[name])
    a = lock.packages["a", "1.0.0"]
    assert (a.edges, a.optional) == ({"b": ("b", "1.0.0"), "n": ("b", "2.0.0")}, {"b", "n"})
    assert lock.packages["b", "1.0.0"].os == ("linux",)
    pins = {"": {dependency: pin for dependency in "ab" if (pin := lock.pins[""].get(dependency))}}
    written = json.loads(write_deno_lock(lock.packages, pins))
    assert written["specifiers"] == {"npm:a@1.0.0": "1.0.0", "npm:b@2.0.0": "2.0.0"}
    assert written["npm"] == {
        "a@1.0.0": {"integrity": "sha512-x", "optionalDependencies": ["b@1.0.0", "n@npm:b@2.0.0"]},
        "b@1.0.0": {"integrity": "sha512-x", "os": ["linux"]},
        "b@2.0.0": {"integrity": "sha512-x"},
    }
    assert written["workspace"] == {"packageJson": {"dependencies": ["npm:a@1.0.0", "npm:b@2.0.0"]}}
    again = read_lock("deno.lock", json.dumps(written).encode())
    assert again.packages["a", "1.0.0"].edges == a.edges


@pytest.mark.parametrize(
    "specifier",
    [
        "github:a/b",
        "a/b",
        "a/b#main",
        "git+ssh://git@h/a.git",
        "git@h:a.git",
        "https://h/a.tgz",
        "jsr:@std/x",
        "patch:x",
        "npm:../../x@1",
    ],
)
def test_refused_specifiers(specifier):
    """Dependencies that no hash of the registry pins are not installed."""
    assert refusal(specifier)


@pytest.mark.parametrize(
    "specifier",
    ["^1.0.0", "*", "latest", "npm:zod@3", "npm:@a/b", "npm:^1.0.0", "workspace:*", "catalog:", "file:../x", "1 || 2"],
)
def test_accepted_specifiers(specifier):
    """Ranges, tags, aliases, and other folders of the repository are."""
    assert refusal(specifier) is None


def test_workspace_patterns():
    """A star is one folder, two are any number, and an exclamation mark takes back."""
    patterns = ("packages/*", "apps/**/bench", "!packages/old")
    assert [is_member(each, patterns) for each in ("packages/a", "packages/a/b", "packages/old", "apps/x/y/bench")] == [
        True,
        False,
        False,
        True,
    ]
    assert is_member("apps/bench", patterns)
    assert is_member("a/b/c", ("**",))
    assert is_member("[a]/b?", ("[a]/*?",))
    assert not is_member("a", ("a/**", "**/a"))


def test_a_pattern_of_many_stars_is_answered():
    """A pattern that could match in very many ways is no way to keep the compiler busy."""
    assert not is_member("a" * 250, ("*a" * 30 + "b",))


def test_a_lockfile_that_was_left_behind_is_not_taken_for_none(tmp_path):
    """A lockfile that cannot be honoured where it stands is refused: without it, versions would float."""
    outside, root = tmp_path / "package-lock.json", tmp_path / "repository"
    outside.write_bytes(npm(LOCKED))
    (root / "evals").mkdir(parents=True)
    (root / "package.json").write_text('{"dependencies": {"x": "1"}}')
    (root / "package-lock.json").symlink_to("../package-lock.json")
    with staged(Site(root, root, None)) as stage, pytest.raises(AuthoringError) as refused:
        find_project(stage)
    assert [str(problem) for problem in refused.value.problems] == [
        "package-lock.json: is a link that leaves the repository; make it a plain file of this repository, or remove it"
    ]

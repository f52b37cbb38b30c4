"""Bundling: what authors may write, the same bytes everywhere, and what is refused."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.esbuild import Bundle, bundle
from trunchray.adapters.sandbox.inspector import Inspector
from trunchray.adapters.sandbox.metafile import PURE_BUILTINS
from trunchray.errors import AuthoringError, Problem

FEATURES = {
    "evals/all.ts": """
        import { shared } from "../lib/shared";
        import { folder } from "../lib";
        import { renamed } from "../lib/renamed.js";
        import { plain } from "../lib/plain.mjs";
        import common = require("../lib/common.cjs");
        import data from "../lib/data.json";
        import typed from "../lib/data.json" with { type: "json" };
        import prose from "../lib/prose.txt" with { type: "text" };
        import { aliased } from "@lib/shared";
        import type { Nothing } from "../lib/types";
        enum Level { Low = 1, High = Low + 1 }
        const enum Fixed { Value = 7 }
        namespace Space { export const inside = "namespace"; }
        class Point { constructor(public readonly x: number) {} }
        const tuple = ["a", "b"] as const;
        const checked = { big: 1_000_000 } satisfies Record<string, number>;
        const nothing: Nothing | undefined = undefined;
        export default {
          shared, folder, renamed, plain, common: common.value, data, typed: typed.list, prose, aliased,
          level: Level.High, fixed: Fixed.Value, space: Space.inside, x: new Point(3).x, tuple, checked,
          optional: nothing ?? null, mode: process.env.NODE_ENV, text: "ü中😀",
        };
    """,
    "lib/shared.ts": 'export const shared = "extensionless"; export const aliased = "path of tsconfig";',
    "lib/index.ts": 'export const folder = "index";',
    "lib/renamed.ts": 'export const renamed = ".js names .ts";',
    "lib/plain.mjs": 'export const plain = "mjs";',
    "lib/common.cjs": 'exports.value = "cjs";',
    "lib/data.json": '{ "list": [1, null] }',
    "lib/prose.txt": "text\n",
    "lib/types.ts": "export type Nothing = never;",
    "tsconfig.json": '{ "compilerOptions": { "paths": { "@lib/*": ["./lib/*"] } } }',
}
EXPORTED = {
    "shared": "extensionless",
    "folder": "index",
    "renamed": ".js names .ts",
    "plain": "mjs",
    "common": "cjs",
    "data": {"list": [1, None]},
    "typed": [1, None],
    "prose": "text\n",
    "aliased": "path of tsconfig",
    "level": 2,
    "fixed": 7,
    "space": "namespace",
    "x": 3,
    "tuple": ["a", "b"],
    "checked": {"big": 1_000_000},
    "optional": None,
    "mode": "production",
    "text": "ü中😀",
}


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def bundled(root: Path, entry: str = "evals/a.ts") -> Bundle:
    return bundle([entry], working_dir=root, root=root)[entry]


def problems(root: Path, *entries: str, working_dir: Path | None = None) -> list[Problem]:
    with pytest.raises(AuthoringError) as caught:
        bundle(entries or ["evals/a.ts"], working_dir=working_dir or root, root=root)
    return list(caught.value.problems)


async def test_what_real_repositories_use_works(tmp_path: Path) -> None:
    """Every way to import a file, and TypeScript without type checks, end as plain values in the sandbox."""
    made = bundled(lay(tmp_path, FEATURES), "evals/all.ts")
    async with Inspector() as inspector:
        inspection = await inspector.inspect(made.code)
    assert (inspection.flaws, inspection.functions) == ((), ())
    assert inspection.value == EXPORTED


def test_a_bundle_names_the_files_it_is_made_of(tmp_path: Path) -> None:
    """`inputs` are relative to the repository root; files of which nothing is used count, types alone do not."""
    made = bundled(lay(tmp_path, FEATURES), "evals/all.ts")
    unused = {"lib/types.ts", "tsconfig.json"}
    assert made.inputs == tuple(sorted(FEATURES.keys() - unused))
    assert made.builtins == ()


NAMESPACES = {
    "evals/a.ts": """
        import { z } from "../lib/index";
        import whole, { copied, text } from "../lib/index";
        const seen = Object.keys(whole.nested);
        export default { used: z.used(), copied: copied.one, late: z.late(), seen, text };
    """,
    "lib/index.ts": """
        import * as z from "./all";
        import * as nested from "./nested";
        export { z };
        export default z;
        export const copied = { ...nested, nested };
        export const dropped = { ...z, z };
        export const text = "var all_exports = {};\\n__export(all_exports, {\\n  used: () => used\\n});\\n";
    """,
    "lib/all.ts": """
        export * as nested from "./nested";
        export const unused = () => "nobody asked for this";
        export function used() { return later; }
        export let later = "before";
        export const late = () => { later = "after"; return used(); };
    """,
    "lib/nested.ts": 'export const one = 1; export { one as "a name" }; export default class { own = 2 }',
}


async def test_what_is_used_of_an_object_of_exports_is_all_that_is_kept(tmp_path: Path) -> None:
    """A namespace that is exported on, as zod's `z` is, works like the module itself, and brings only what is used."""
    made = bundled(lay(tmp_path, NAMESPACES))
    assert b"nobody asked" not in made.code
    async with Inspector() as inspector:
        inspection = await inspector.inspect(made.code)
    assert inspection.flaws == ()
    assert inspection.value == {
        "used": "before",
        "copied": 1,
        "late": "after",
        "seen": ["a name", "default", "one"],
        "text": "var all_exports = {};\n__export(all_exports, {\n  used: () => used\n});\n",
    }


CHANGED = {
    "CommonJS": ('export * from "./c.cjs";', "exports.extra = 3;", "z.extra"),
    "assignment": (
        "export const extra = 3;",
        "",
        "(() => { try { z.added = 1; } catch { /* refused */ } return z.extra; })()",
    ),
    "absence": (
        "export const extra = 3;",
        "",
        "(() => { try { z.absent(); } catch (e) { return /absent is not a func/.test(e) && 3; } })()",
    ),
}


@pytest.mark.parametrize(("exported", "common", "used"), CHANGED.values(), ids=CHANGED.keys())
async def test_an_object_of_exports_that_changes_stays_one(
    tmp_path: Path, exported: str, common: str, used: str
) -> None:
    """What is known only when the code runs is not taken for missing, and other bundles are as they are alone."""
    files = {
        "evals/a.ts": f'import {{ z }} from "../lib/changed"; export default {{ extra: {used} }};',
        "evals/b.ts": NAMESPACES["evals/a.ts"],
        "lib/changed.ts": 'import * as z from "./extra"; export { z };',
        "lib/extra.ts": f"{exported}\nexport const own = 1;",
        "lib/c.cjs": common,
    }
    root = lay(tmp_path, NAMESPACES | files)
    together = bundle(["evals/a.ts", "evals/b.ts"], working_dir=root, root=root)
    assert together["evals/b.ts"] == bundled(root, "evals/b.ts")
    async with Inspector() as inspector:
        assert (await inspector.inspect(together["evals/a.ts"].code)).value == {"extra": 3}


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    """Neither the place of a repository, nor the other entries, nor a repetition changes a bundle."""
    first, second = lay(tmp_path / "one", FEATURES), tmp_path / "two" / "deeper"
    shutil.copytree(first, second)
    alone = bundled(first, "evals/all.ts")
    names = ["lib/shared.ts", "evals/all.ts"]
    together = bundle(names, working_dir=second, root=second)
    assert list(together) == names
    assert together["evals/all.ts"] == alone == bundled(second, "evals/all.ts")
    assert str(tmp_path).encode() not in alone.code


def test_a_benchmark_inside_a_repository_may_import_from_beside_it(tmp_path: Path) -> None:
    """Paths are relative to the benchmark, and what is above it but inside the root is allowed."""
    lay(
        tmp_path,
        {"bench/evals/a.ts": 'export { x as default } from "../../lib/x";', "lib/x.ts": "export const x = {};"},
    )
    made = bundle(["evals/a.ts", "../lib/x.ts"], working_dir=tmp_path / "bench", root=tmp_path)
    assert made["evals/a.ts"].inputs == ("bench/evals/a.ts", "lib/x.ts")


async def test_commonjs_may_require_pure_builtins(tmp_path: Path) -> None:
    """`require("path")` in a CommonJS file becomes an import that the sandbox can serve."""
    files = {
        "evals/a.ts": 'import made from "../lib/c.cjs"; export default { made };',
        "lib/c.cjs": 'const path = require("path"); module.exports = path.join("a", "..", "b");',
    }
    made = bundled(lay(tmp_path, files))
    assert made.builtins == ("node:path",)
    async with Inspector() as inspector:
        assert (await inspector.inspect(made.code)).value == {"made": "b"}


async def test_every_builtin_that_may_be_imported_is_there(tmp_path: Path) -> None:
    """The bundler's list and the sandbox's are the same."""
    names = sorted(PURE_BUILTINS)
    imports = "\n".join(f'import * as m{n} from "node:{name}";' for n, name in enumerate(names))
    counts = ", ".join(f"Object.keys(m{n}).length > 1" for n in range(len(names)))
    made = bundled(lay(tmp_path, {"evals/a.ts": f"{imports}\nexport default {{ there: [{counts}] }};"}))
    assert made.builtins == tuple(f"node:{name}" for name in names)
    async with Inspector() as inspector:
        assert (await inspector.inspect(made.code)).value == {"there": [True] * len(names)}


def test_every_error_has_its_place(tmp_path: Path) -> None:
    """All errors of all entries are told at once, each with file and line."""
    files = {
        "evals/a.ts": 'import { z } from "zod";\nimport "./missing";\nexport default { z };\n',
        "evals/b.ts": "export default {\n  a: 1,,\n};\n",
    }
    assert [str(problem) for problem in problems(lay(tmp_path, files), "evals/a.ts", "evals/b.ts")] == [
        'evals/a.ts:1: Could not resolve "zod": the package is not installed; declare it in package.json',
        'evals/a.ts:2: Could not resolve "./missing": there is no such file',
        'evals/b.ts:2: Expected identifier but found ","',
    ]


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    """An entry that is no file is a problem of its own."""
    assert problems(lay(tmp_path, {}), "evals/none.ts") == [Problem("evals/none.ts", 0, "", "no such file")]


REFUSED = {
    "absolute path": ('import t from "{outside}" with {{ type: "text" }};\nexport default {{ t }};', "outside the"),
    "parent folder": ('\nimport t from "../../outside.txt";\nexport default {{ t }};', "outside the repository"),
    "http": ('import x from "https://example.com/x.js";\nexport default {{ x }};', "not loaded from the network"),
    "npm": ('import x from "npm:is-odd";\nexport default {{ x }};', "not loaded from the network"),
    "jsr": ('import x from "jsr:@std/path";\nexport default {{ x }};', "not loaded from the network"),
    "file system": ('import fs from "node:fs";\nexport default {{ x: fs.readFileSync("/x") }};', "has no such module"),
    "module": ('import {{ createRequire as r }} from "module";\nexport default {{ r }};', "has no such module"),
    "child process": ('const x = require("child_process");\nexport default {{ x }};', "has no such module"),
    "run-time import": ('export default {{ x: await import("node:crypto") }};', "cannot import at run time"),
}


@pytest.mark.parametrize(("source", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_bundle_may_not_hold_is_refused(tmp_path: Path, source: str, reason: str) -> None:
    """Files outside the repository, the network, and modules that do more than compute."""
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    root = lay(tmp_path / "root", {"evals/a.ts": source.format(outside=outside)})
    (problem,) = problems(root)
    assert problem.path == "evals/a.ts"
    assert problem.row == 1 + source.startswith("\n")
    assert reason in problem.message


def test_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    """A file is judged by where it really is; a link inside the repository is fine."""
    (tmp_path / "outside.txt").write_text("secret")
    root = lay(
        tmp_path / "root", {"evals/a.ts": 'import t from "./link.txt"; export default { t };', "b.txt": "inside"}
    )
    (root / "evals/link.txt").symlink_to("../b.txt")
    assert bundled(root).inputs == ("b.txt", "evals/a.ts")
    (root / "evals/link.txt").unlink()
    (root / "evals/link.txt").symlink_to("../../outside.txt")
    (problem,) = problems(root)
    assert "outside the repository" in problem.message


def test_an_entry_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    """The entry itself must lie in the repository, too."""
    (tmp_path / "outside.ts").write_text("export default {};")
    root = lay(tmp_path / "root", {"evals/b.ts": ""})
    (root / "evals/a.ts").symlink_to(tmp_path / "outside.ts")
    (problem,) = problems(root)
    assert "outside the repository" in problem.message


def test_modules_are_not_found_through_the_environment(tmp_path: Path) -> None:
    """`NODE_PATH` and folders above the root give nothing to a bundle."""
    lay(tmp_path, {"node_modules/above/index.js": "module.exports = 1;"})
    root = lay(tmp_path / "root", {"evals/a.ts": 'import x from "above"; export default { x };'})
    (problem,) = problems(root)
    # Where the operating system hides what is above the root, it is not even found there.
    assert re.search("outside the repository|not installed", problem.message)


def test_no_entries_need_no_bundler(tmp_path: Path) -> None:
    """Nothing to do is no error."""
    assert bundle([], working_dir=tmp_path, root=tmp_path) == {}


def test_an_entry_name_is_never_an_option(tmp_path: Path) -> None:
    """A file whose name looks like an option is a file."""
    name = "--minify.ts"
    assert os.linesep.encode() in bundled(lay(tmp_path, {name: "export default {};"}), name).code

"""Reading what esbuild says: its errors, and its metafile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunchray.adapters.sandbox import esbuild
from trunchray.adapters.sandbox.deno import HOSTS
from trunchray.adapters.sandbox.esbuild import ESBUILD_VERSION
from trunchray.adapters.sandbox.metafile import Metafile
from trunchray.errors import Problem

ERRORS = """✘ [ERROR] Could not resolve "./evals/nope.ts"

✘ [ERROR] Expected identifier but found ","

    evals/odd name:1.ts:12:21:
      12 │ export default {a: 1,,}
         ╵                      ^

✘ [ERROR] Could not resolve "zod"

    ../lib/a.ts:1:16:
      1 │ import {z} from "zod"; import "npm:x"; import "jsr:y"; import "http...
        ╵                 ~~~~~

  You can mark the path "zod" as external to exclude it from the bundle, which will remove this error.

"""


def test_errors_have_their_file_and_line(tmp_path: Path) -> None:
    """A location is optional, hints and excerpts are dropped."""
    assert list(esbuild._problems(ERRORS, tmp_path / "benchmark", tmp_path)) == [
        Problem("", 0, "", 'Could not resolve "./evals/nope.ts": there is no such file'),
        Problem("evals/odd name:1.ts", 12, "", 'Expected identifier but found ","'),
        Problem(
            "../lib/a.ts", 1, "", 'Could not resolve "zod": the package is not installed; declare it in package.json'
        ),
    ]


def test_the_lock_pins_the_version_and_names_no_address() -> None:
    """What is fetched is decided by hashes; from where is the user's choice."""
    package = json.loads((HOSTS / "esbuild" / "package.json").read_text())
    text = (HOSTS / "esbuild" / "deno.lock").read_text()
    lock = json.loads(text)
    assert package["dependencies"] == {"esbuild": ESBUILD_VERSION}
    assert lock["specifiers"] == {f"npm:esbuild@{ESBUILD_VERSION}": ESBUILD_VERSION}
    assert all(entry["integrity"].startswith("sha512-") for entry in lock["npm"].values())
    assert "://" not in text
    assert "registry" not in text


def imported(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "kind": "import-statement", **more}


def metafile(tmp_path: Path, imports: list[dict[str, Any]], **inputs: list[dict[str, Any]]) -> Metafile:
    """One bundle, `0.js`, of `a.ts` with these imports; `inputs` are the imports of further files."""
    files = {"a.ts": imports, **inputs}
    external = [found for found in imports if found.get("external")]
    meta = {
        "inputs": {name: {"imports": found} for name, found in files.items()},
        "outputs": {"../somewhere/0.js": {"entryPoint": "a.ts", "imports": external}},
    }
    return Metafile(meta, working_dir=tmp_path / "bench", root=tmp_path)


def test_inputs_are_reached_files_relative_to_the_root(tmp_path: Path) -> None:
    """Attributes are no part of a name, data URLs are no files, cycles end."""
    lib = "../lib/x.json with { type: 'json' }"
    meta = metafile(
        tmp_path, [imported(lib), imported("<data:text/javascript,1>"), imported("b.ts")],
        **{lib: [], "<data:text/javascript,1>": [], "b.ts": [imported("a.ts")], "unrelated.ts": []},
    )  # fmt: skip
    assert meta.inputs("0.js") == ("bench/a.ts", "bench/b.ts", "lib/x.json")
    assert list(meta.problems("0.js")) == []


BUILTINS = ["crypto", "node:path", "path/posix", "node:util/types"]


@pytest.mark.parametrize(
    "name", ["fs", "node:fs/promises", "http", "node:vm", "worker_threads", "node:module", "timers"]
)
def test_only_modules_that_compute_are_allowed(tmp_path: Path, name: str) -> None:
    """With and without `node:`, and with their parts."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "a.ts").write_text(f'\n\nimport x from "{name}";')
    meta = metafile(tmp_path, [imported(allowed, external=True) for allowed in (*BUILTINS, name)])
    (problem,) = meta.problems("0.js")
    assert (problem.path, problem.row) == ("a.ts", 3)
    assert problem.message.startswith(f"imports '{name}': the sandbox has no such module")

"""What esbuild says of a bundle: which files it is made of, and what it still imports. And what of that is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trunchray.errors import Problem

PURE_BUILTINS = frozenset(
    {
        "assert",
        "assert/strict",
        "buffer",
        "crypto",
        "events",
        "path",
        "path/posix",
        "path/win32",
        "punycode",
        "querystring",
        "string_decoder",
        "url",
        "util",
        "util/types",
    }
)
"""Modules of Node that a bundle may import: those that compute and do nothing else."""

_computed = re.compile(r"""\b(?:import|require)\s*\(\s*(?!["'`][^"'`]*["'`]\s*[,)])""")
_attributes = re.compile(r" with \{.*\}$")


class Metafile:
    """esbuild's metafile; its paths are relative to the working directory. Both directories have no symbolic links."""

    def __init__(self, meta: dict[str, Any], *, working_dir: Path, root: Path) -> None:
        self._inputs: dict[str, Any] = meta["inputs"]
        self._outputs = {Path(name).name: output for name, output in meta["outputs"].items()}
        self._working_dir = working_dir
        self._root = root

    def inputs(self, output: str) -> tuple[str, ...]:
        """The files of one output, relative to the repository root."""
        files = (self._file(key) for key in self._reached(output))
        return tuple(sorted({os.path.relpath(file, self._root) for file in files if file is not None}))

    def builtins(self, output: str) -> tuple[str, ...]:
        """The modules of Node that one output imports, such as "node:crypto"."""
        return tuple(sorted({f"node:{_bare(name)}" for name, _ in self._externals(output)}))

    def required(self, output: str) -> tuple[str, ...]:
        """Those, as written, that it takes by `require`, which only CommonJS has."""
        return tuple(sorted({name for name, kind in self._externals(output) if kind == "require-call"}))

    def problems(self, output: str) -> Iterator[Problem]:
        """Files from outside the root, and imports that the sandbox does not have."""
        reached = self._reached(output)
        for key in reached:
            file = self._file(key)
            if file is not None and not file.is_relative_to(self._root):
                yield self._outside(output, key, reached)
        for name, kind in self._externals(output):
            if refusal := _refusal(name, kind):
                yield self._at_import(name, reached, refusal)

    def _reached(self, output: str) -> list[str]:
        """Every input that the entry reaches by imports, the entry first."""
        reached = {self._outputs[output]["entryPoint"]: None}
        for key in (queue := list(reached)):
            for found in self._inputs[key]["imports"]:
                if not found.get("external") and found["path"] not in reached:
                    reached[found["path"]] = None
                    queue.append(found["path"])
        return list(reached)

    def _externals(self, output: str) -> list[tuple[str, str]]:
        imports = self._outputs[output]["imports"]
        return [(found["path"], found["kind"]) for found in imports if found.get("external")]

    def _file(self, key: str) -> Path | None:
        """Where an input really is; None for one that is not a file, such as a `data:` URL."""
        if key.startswith("<"):
            return None
        return Path(os.path.realpath(self._working_dir / _attributes.sub("", key)))

    def _outside(self, output: str, key: str, reached: list[str]) -> Problem:
        if key == self._outputs[output]["entryPoint"]:
            return Problem(key, 0, "", "lies outside the repository; copy the file into it")
        return self._at_import(key, reached, "lies outside the repository; copy what you need into it")

    def _at_import(self, path: str, reached: list[str], what: str) -> Problem:
        """A problem at the first import of `path`."""
        for key in reached:
            for found in self._inputs[key]["imports"]:
                if found["path"] == path:
                    written = found.get("original", path)
                    row = self._row(key, written) or self._computed_row(key)
                    return Problem(_attributes.sub("", key), row, "", f"imports {written!r}: {what}")
        return Problem(reached[0], 0, "", f"imports {path!r}: {what}")

    def _row(self, key: str, written: str) -> int:
        return next((row for row, line in enumerate(self._lines(key), 1) if written in line), 0)

    def _computed_row(self, key: str) -> int:
        """The first import whose name is put together, such as `import("node:" + "fs")`."""
        return next((row for row, line in enumerate(self._lines(key), 1) if _computed.search(line)), 0)

    def _lines(self, key: str) -> list[str]:
        file = self._file(key)
        return file.read_text("utf-8", "replace").split("\n") if file else []


def _bare(name: str) -> str:
    return name.removeprefix("node:")


def _refusal(name: str, kind: str) -> str | None:
    if "://" in name:
        return "modules are not loaded from the network; copy the file into the repository"
    if _bare(name) not in PURE_BUILTINS:
        return f"the sandbox has no such module; of Node's own it has {', '.join(sorted(PURE_BUILTINS))}"
    if kind not in ("import-statement", "require-call"):
        return "the sandbox cannot import at run time; use an import at the top of the file"
    return None

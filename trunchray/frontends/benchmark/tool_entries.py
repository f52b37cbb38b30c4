"""What is bundled of a tool module: its tools together with the `ai` that it was written for."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from dataclasses import replace

from trunchray.adapters.sandbox.esbuild import Bundle
from trunchray.errors import Problem
from trunchray.frontends.benchmark.bundles import bundle_all
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.staging import Stage

_SUFFIX = ".trunchray.mjs"


def bundle_tools(stage: Stage, modules: Sequence[str], found: list[Problem]) -> dict[str, Bundle]:
    """A bundle for each tool module, by its path; what cannot be bundled goes to `found` and is left out.

    A bundle exports the module's `tools`, and `asSchema` and `version` of the `ai` that the module itself would import.
    So the author's own libraries turn schemas into JSON Schema and validate arguments, whatever their versions.
    """
    entries: dict[str, str] = {}
    for module in modules:
        if problem := _written(stage, module):
            found.append(problem)
        else:
            entries[_entry(module)] = module
    wrong: list[Problem] = []
    bundles = bundle_all(stage, list(entries), wrong)
    found += [
        replace(problem, path=entries[problem.path], row=0) if problem.path in entries else problem for problem in wrong
    ]
    return {entries[entry]: bundled for entry, bundled in bundles.items()}


def _entry(module: str) -> str:
    """Beside the module, so that packages are found as the module finds them; the same in every stage."""
    return module + _SUFFIX


def _written(stage: Stage, module: str) -> Problem | None:
    """Write the entry of a module; why not, when that cannot be."""
    if not _has_ai(stage, module):
        return Position(module).problem(
            "needs the npm package 'ai', which makes its tools and their schemas; add it (and zod) to the "
            "`dependencies` of package.json"
        )
    file = json.dumps(f"./{posixpath.basename(module)}")
    try:
        with (stage.directory / _entry(module)).open("x", encoding="utf-8") as entry:
            entry.write(_ENTRY.format(file=file))
    except FileExistsError:
        return Position(_entry(module)).problem("has a name that trunchray needs for itself; rename it")
    return None


_ENTRY = """\
export {{ asSchema }} from "ai";
export {{ version }} from "ai/package.json";
import * as module from {file};
export const tools = module.tools;
"""


def _has_ai(stage: Stage, module: str) -> bool:
    """Whether `ai` is installed where the module's imports are looked up."""
    folders = (stage.directory / module).parents
    inside = [folder for folder in folders if folder.is_relative_to(stage.root)]
    return any((folder / "node_modules" / "ai" / "package.json").is_file() for folder in inside)

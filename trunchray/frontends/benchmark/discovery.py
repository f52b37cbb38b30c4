"""Which modules a benchmark consists of: those its config names, or all under `evals/` and `tools/`."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from trunchray.errors import Problem
from trunchray.frontends.benchmark.config import AuthoredConfig
from trunchray.frontends.benchmark.paths import bad_module, bad_syntax
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.site import MODULE_SUFFIXES
from trunchray.frontends.benchmark.staging import CLOSED, Stage


def entrypoints(stage: Stage, config: AuthoredConfig, place: Position, found: list[Problem]) -> list[str]:
    """The eval modules, relative to the benchmark directory, in release order. `place` is where the config is."""
    listed = config.chosen("evals")
    if listed is not None:
        return chosen(stage, listed, place.at("evals"), found)
    evals = _discovered(stage, "evals", found)
    if not evals:
        message = "there is no eval module here; add one such as evals/answer.ts, or list `evals` in the config"
        found.append(Position("evals").problem(message))
    return evals


def tool_modules(stage: Stage, config: AuthoredConfig, place: Position, found: list[Problem]) -> list[str]:
    """The same for tool modules; there may be none."""
    listed = config.chosen("tools")
    if listed is not None:
        return chosen(stage, listed, place.at("tools"), found)
    return _discovered(stage, "tools", found)


def discover(directory: Path, folder: str) -> list[str]:
    """The modules under `folder`, relative to the benchmark directory, in the order of their UTF-16 code units.

    Left out: names with `.test.` or `.spec.`, type declarations, `node_modules` and dot folders.
    """
    found: list[str] = []
    for here, folders, files in os.walk(directory / folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        inside = Path(here).relative_to(directory)
        found += [(inside / name).as_posix() for name in files if _is_module(name) and (Path(here) / name).is_file()]
    return sorted(found, key=lambda path: path.encode("utf-16-be", "surrogatepass"))


def chosen(stage: Stage, entries: list[str], place: Position, found: list[Problem]) -> list[str]:
    """The entrypoints an author listed, normalised; bad and repeated ones go to `found` instead."""
    modules: list[str] = []
    for index, entry in enumerate(entries):
        where = place.at(f"[{index}]")
        path = posixpath.normpath(entry) if entry else entry
        if complaint := bad_syntax(entry) or bad_module(stage, path):
            found.append(where.problem(f"{shown(entry)} {complaint}"))
        elif path in modules:
            found.append(where.problem(f"{shown(entry)} is listed twice; remove one"))
        else:
            modules.append(path)
    return modules


def _discovered(stage: Stage, folder: str, found: list[Problem]) -> list[str]:
    modules: list[str] = []
    for path in [*discover(stage.directory, folder), *_left_behind(stage, folder)]:
        if complaint := bad_syntax(path):
            found.append(Position(folder).problem(f"{shown(path)} {complaint}; rename it"))
        elif complaint := stage.left_out(path) or bad_module(stage, path):
            found.append(Position(folder).problem(f"{shown(path)} {complaint}; remove it"))
        else:
            modules.append(path)
    return modules


def _left_behind(stage: Stage, folder: str) -> list[str]:
    """What has a module's name under `folder` but is not in the stage: links that lead nowhere, pipes, large files.

    Folders that cannot be entered are among them, because there may be modules in them.
    """
    closed = {stage.root / path for path, reason in stage.reasons.items() if reason.startswith(CLOSED)}
    left = sorted([*(stage.root / path for path in stage.reasons), *stage.waiting])
    inside = [path for path in left if path.is_relative_to(stage.directory / folder)]
    return [path.relative_to(stage.directory).as_posix() for path in inside if _is_module(path.name) or path in closed]


def _is_module(name: str) -> bool:
    left_out = name.endswith((".d.ts", ".d.mts")) or ".test." in name or ".spec." in name
    return name.endswith(MODULE_SUFFIXES) and not left_out

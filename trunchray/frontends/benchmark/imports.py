"""Why an import cannot be had, as far as the repository tells."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace

from trunchray.errors import Problem
from trunchray.frontends.benchmark.dependencies.specifier import is_package_name
from trunchray.frontends.benchmark.paths import relative_to_module
from trunchray.frontends.benchmark.position import shown
from trunchray.frontends.benchmark.staging import LARGE_FILE, Stage

_unresolved = re.compile(r'Could not resolve "([^":]+)"')
_SUFFIXES = ("", ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json")
"""What may be left out of a relative import."""
_paths = re.compile(r'"paths"\s*:\s*\{(?P<patterns>[^{}]*)\}')
_pattern = re.compile(r'"(?P<pattern>[^"]+)"\s*:')


def explained(stage: Stage, problem: Problem) -> Problem:
    """The same problem, with what an author can do, when it is about an import that leads nowhere."""
    found = _unresolved.match(problem.message)
    if found is None:
        return problem
    name = found[1]
    reason = _left_behind(stage, problem.path, name) if name.startswith(".") else _nowhere(stage, problem.path, name)
    return replace(problem, message=f"imports {reason}") if reason else problem


def _left_behind(stage: Stage, module: str, name: str) -> str | None:
    """Why the repository's file is not in the stage; None when the repository has no such file either."""
    for suffix in _SUFFIXES:
        path = relative_to_module(module, name + suffix)
        if reason := stage.left_out(path):
            return f"{shown(name)}, which {reason}; copy what you need into the repository"
        if stage.waits(path):
            limit = f"{LARGE_FILE // 10**6} MB"
            return f"{shown(name)}, which has more than {limit}; what modules import may have at most {limit}"
    return None


def _nowhere(stage: Stage, module: str, name: str) -> str:
    """What is wrong with the name of a package, or with an alias that the nearest tsconfig.json has."""
    for config, pattern in _aliases(stage, module):
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name):
            there = f"`paths` of {config} has {shown(pattern)}"
            return f"{shown(name)}, but there is no file where {there}; correct one of them"
    if not is_package_name("/".join(name.split("/")[: 2 if name.startswith("@") else 1])):
        return (
            f"{shown(name)}, which cannot be a package; correct it, or the `paths` of tsconfig.json that it stands in"
        )
    advice = "add it to the dependencies in package.json, and update the lockfile"
    return f"the npm package {shown(name)}, which is not installed; {advice}"


def _aliases(stage: Stage, module: str) -> Iterator[tuple[str, str]]:
    """Each pattern in `paths` of the tsconfig.json that holds for a module, with the file's path."""
    folder = posixpath.dirname(module)
    while (stage.directory / folder).resolve().is_relative_to(stage.root):
        config = posixpath.normpath(posixpath.join(folder, "tsconfig.json"))
        if (stage.directory / config).is_file():
            text = (stage.directory / config).read_text("utf-8", "replace")
            for found in _paths.finditer(text):
                yield from ((config, each["pattern"]) for each in _pattern.finditer(found["patterns"]))
            return
        folder = posixpath.normpath(posixpath.join(folder, ".."))

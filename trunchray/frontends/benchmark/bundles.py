"""Bundling modules, with every module's own problems even when others fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trunchray.adapters.sandbox.esbuild import Bundle, bundle
from trunchray.errors import AuthoringError, Problem
from trunchray.frontends.benchmark.position import shown
from trunchray.frontends.benchmark.staging import Stage

_unresolved = re.compile(r'Could not resolve "([^"./:][^":]*)"')


def bundle_all(stage: Stage, entries: Sequence[str], found: list[Problem]) -> dict[str, Bundle]:
    """A bundle for each entry, by its path; what cannot be bundled goes to `found` and is left out."""
    if not entries:
        return {}
    try:
        return bundle(entries, working_dir=stage.directory, root=stage.root)
    except AuthoringError as e:
        found += _explained(e.problems)
        return {} if len(entries) == 1 else _one_by_one(stage, entries)


def _one_by_one(stage: Stage, entries: Iterable[str]) -> dict[str, Bundle]:
    """The bundles of those entries that have no problem, so that their other problems can be told as well."""
    good: dict[str, Bundle] = {}
    for entry in entries:
        try:
            good |= bundle([entry], working_dir=stage.directory, root=stage.root)
        except AuthoringError:
            continue
    return good


def _explained(problems: Iterable[Problem]) -> list[Problem]:
    return [
        _package(problem, match[1]) if (match := _unresolved.match(problem.message)) else problem
        for problem in problems
    ]


def _package(problem: Problem, name: str) -> Problem:
    message = (
        f"imports the npm package {shown(name)}, which is not installed; add it to the dependencies in package.json, "
        "and update the lockfile"
    )
    return replace(problem, message=message)

"""Bundling modules, with every module's own problems even when others fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunchray.adapters.sandbox.esbuild import Bundle, bundle
from trunchray.errors import AuthoringError, Problem
from trunchray.frontends.benchmark.imports import explained
from trunchray.frontends.benchmark.staging import Stage


def bundle_all(stage: Stage, entries: Sequence[str], found: list[Problem]) -> dict[str, Bundle]:
    """A bundle for each entry, by its path; what cannot be bundled goes to `found` and is left out."""
    if not entries:
        return {}
    try:
        return bundle(entries, working_dir=stage.directory, root=stage.root)
    except AuthoringError as e:
        found += [explained(stage, problem) for problem in e.problems]
        return {} if len(entries) == 1 else _one_by_one(stage, entries, found)


def _one_by_one(stage: Stage, entries: Iterable[str], found: list[Problem]) -> dict[str, Bundle]:
    """The bundles of those entries that have no problem, so that their other problems can be told as well.

    Of a bundle with many entries, esbuild tells only the first kind of problem, so `found` may get more of them here.
    """
    good: dict[str, Bundle] = {}
    for entry in entries:
        try:
            good |= bundle([entry], working_dir=stage.directory, root=stage.root)
        except AuthoringError as e:
            found += [explained(stage, problem) for problem in e.problems]
    return good

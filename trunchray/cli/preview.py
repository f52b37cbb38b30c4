"""What would be frozen, as text in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trunchray.adapters.releases import CaseTable
from trunchray.cli.screen import figures, one_line
from trunchray.frontends.benchmark.preview import kinds

if TYPE_CHECKING:
    from collections import Counter

    from rich.console import Console

    from trunchray.core.release import Release
    from trunchray.frontends.benchmark.compiler import Compiled


def show_preview(console: Console, compiled: Compiled) -> None:
    """Evals with their cases, then everything that runs code, then the digest."""
    release = compiled.release
    show_evals(console, release, kinds(CaseTable(compiled.cases)))
    for line in _code(release):
        console.print(line)
    console.print(f"digest   {release.digest}  (nothing was written)")


def show_evals(console: Console, release: Release, graded_by: Mapping[str, Counter[str]]) -> None:
    """The title, and a table of the evals; `graded_by` counts the checks of each kind by eval id."""
    console.print(f"{release.title} {release.version}")
    table = figures("eval", "cases")
    table.add_column("graded by")
    for each in release.evals:
        graded = ", ".join(f"{kind} {n:,}" for kind, n in graded_by[each.id].most_common())
        table.add_row(each.id, f"{each.cases:,}", graded)
    console.print(table)


def _code(release: Release) -> Iterator[str]:
    for tool in release.tools:
        yield f"tool {tool.name}: {one_line(tool.description, 100)}"
        yield f"  {json.dumps(tool.input_schema, ensure_ascii=False)}"
    for evaluator in release.evaluators:
        yield f"evaluator {evaluator.key}"
    for transformer in release.transformers:
        cases = f"{transformer.case_count:,} cases"
        yield f"transformer {transformer.name}: {transformer.path} {transformer.sha256}, {cases}"
        for name, source in transformer.sources.items():
            yield f"  {name}: {source.path} {source.sha256}, {source.bytes:,} bytes"
    if release.dependencies.state != "none":
        versions = [f"{name} {v}" for name in ("ai", "zod") if (v := getattr(release.dependencies, name))]
        yield f"packages {', '.join([release.dependencies.state, *versions])}"

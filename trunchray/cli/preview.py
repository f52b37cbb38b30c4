"""What would be frozen, as text in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trunchray.cli.screen import figures, one_line
from trunchray.frontends.benchmark.preview import kinds

if TYPE_CHECKING:
    from rich.console import Console

    from trunchray.core.release import Release
    from trunchray.frontends.benchmark.compiler import Compiled


def show_preview(console: Console, compiled: Compiled) -> None:
    """Evals with their cases, then everything that runs code, then the digest."""
    release = compiled.release
    console.print(f"{release.title} {release.version}")
    table = figures("eval", "cases")
    table.add_column("graded by")
    found = kinds(compiled.cases)
    for each in release.evals:
        graded = ", ".join(f"{kind} {n:,}" for kind, n in found[each.id].most_common())
        table.add_row(each.id, f"{each.cases:,}", graded)
    console.print(table)
    for line in _code(release):
        console.print(line)
    console.print(f"digest   {release.digest}  (nothing was written)")


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

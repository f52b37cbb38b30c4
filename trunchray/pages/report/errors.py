"""Errors: which kinds, and whose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trunchray.core.excerpt import excerpt
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.report.section import Section, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import count, heading, table, words

SHOWN = 100
"""Kinds that the page lists."""


def errors(standings: Sequence[Standing]) -> Section:
    counts = {standing.name: {each.kind: each.count for each in standing.model.errors} for standing in standings}
    total = Counter[str]()
    for by_kind in counts.values():
        total.update(by_kind)
    if not total:
        return Section("errors", "Errors", paragraph("No trial ended in an error."))
    kinds = sorted(total, key=lambda kind: (-total[kind], kind))
    examples = _examples(standings)
    rows = [
        _row(kind, total[kind], [by_kind.get(kind, 0) for by_kind in counts.values()], examples[kind])
        for kind in kinds[:SHOWN]
    ]
    headings = ("Error", "Trials", *(standing.label() for standing in standings), "For example")
    said = "Trials that ended in an error have no verdict and count neither way."
    if len(kinds) > SHOWN:
        said += f" Shown are the {SHOWN} most frequent of {len(kinds):,} kinds; summary.json has all of them."
    return Section("errors", "Errors", joined((table("Errors of each model", headings, rows), paragraph(said))))


def _row(kind: str, trials: int, by_model: Sequence[int], example: str) -> list[Html]:
    cells = [count(many, kind="" if many else "none") for many in by_model]
    return [heading(tag("code", kind)), count(trials), *cells, words(tag("span", example, class_="message"))]


def _examples(standings: Sequence[Standing]) -> dict[str, str]:
    """The message that sorts first of each kind, on one line."""
    found: dict[str, str] = {}
    for standing in standings:
        for error in standing.model.errors:
            found[error.kind] = min(found.get(error.kind, error.example), error.example)
    return {kind: excerpt(" ".join(example.split()), 200) for kind, example in found.items()}

"""What regrading changed, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trunchray.cli.screen import Line, fitted, one_line

if TYPE_CHECKING:
    from rich.console import Console

    from trunchray.core.flips import Flip, FlipReport, Judgement
    from trunchray.engine.regrade import LeftOut

SHOWN = 20
"""Flips that are shown one by one."""
NAMED = 10
"""Cases that are named of those that are left out."""


def left_out_lines(left_out: LeftOut) -> Iterator[str]:
    """Which cases are not graded anew, and why: a line for each reason."""
    for cases, why in (
        (left_out.changed, "asked otherwise by the new release"),
        (left_out.removed, "not in the new release"),
        (left_out.added, "new, so that nobody has answered"),
    ):
        if cases.count:
            some = f"{cases.count:,} case{'s' if cases.count > 1 else ''}"
            yield f"left out, because {why}: {some} ({cases.named(NAMED)})"


def show_flips(console: Console, found: FlipReport, uri: str) -> None:
    """How many verdicts changed, of which model and eval, and the first ones."""
    rescored = f"; {found.rescored:,} kept theirs with another score" if found.rescored else ""
    if not found.flipped:
        console.print(f"no verdict of {found.compared:,} has changed{rescored}")
        return
    console.print(f"{found.flipped:,} of {found.compared:,} verdicts have changed{rescored}")
    kinds = list(dict.fromkeys((one.old, one.new) for one in sorted(found.counts, key=lambda one: (one.old, one.new))))
    columns = [(f"{old} → {new}", 0) for old, new in kinds]
    counts: dict[str, dict[tuple[str, str], int]] = {}
    for one in found.counts:
        counts.setdefault(f"{one.model} / {one.eval_id}", {})[one.old, one.new] = one.count
    lines = [Line(name, [f"{by_kind.get(kind, 0):,}" for kind in kinds]) for name, by_kind in sorted(counts.items())]
    console.print(fitted(console, "model / eval", columns, lines))
    for flip in found.flips[:SHOWN]:
        console.print(_line(flip))
    if found.flipped > SHOWN:
        console.print(f"and {found.flipped - SHOWN:,} more")
    console.print(f"flips   {uri}/report/flips.jsonl")


def _line(flip: Flip) -> str:
    attempt = f", attempt {flip.attempt}" if flip.attempt > 1 else ""
    return f"{flip.case_id} ({flip.model}{attempt}): {_judgement(flip.old)} → {_judgement(flip.new)}"


def _judgement(one: Judgement) -> str:
    """The outcome, a score between none and all, and the message."""
    score = f" {one.score:.3g}" if one.score not in {None, 0.0, 1.0} else ""
    message = f" ({one_line(one.message, 80)})" if one.message else ""
    return f"{one.outcome}{score}{message}"

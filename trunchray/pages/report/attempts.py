"""What several attempts at a case are worth."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.wording import percent
from trunchray.pages.html import Html, joined
from trunchray.pages.report.section import Section, paragraph
from trunchray.pages.report.standing import Standing
from trunchray.pages.tables import number, table

_READING = (
    "pass@k: how often at least one of k attempts at a case passes; pass^k: how often all of them do. Both are "
    "estimated from cases with at least k graded attempts."
)


def attempts(standings: Sequence[Standing]) -> Section:
    ks = sorted({k for standing in standings for k in standing.model.pass_at_k}, key=int)
    headings = ("Model", *(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks))
    rows = [_row(standing, ks) for standing in standings]
    shown = table("Several attempts at a case", headings, rows)
    return Section("attempts", "Attempts", joined((shown, paragraph(_READING))))


def _row(standing: Standing, ks: Sequence[str]) -> list[Html]:
    shares = [figures.get(k) for figures in (standing.model.pass_at_k, standing.model.pass_hat_k) for k in ks]
    return [standing.heading(), *(number(percent(share), share) for share in shares)]

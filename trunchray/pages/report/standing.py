"""A model in its place of the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trunchray.core.report import ModelReport
from trunchray.core.wording import percent
from trunchray.pages.html import Html, joined, tag
from trunchray.pages.tables import heading, number


@dataclass(frozen=True)
class Standing:
    """`place` counts from 1; it stands for the model in charts."""

    place: int
    model: ModelReport

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def counted(self) -> int:
        """Trials with a row."""
        return self.model.passed + self.model.failed + self.model.error

    @property
    def cost_per_thousand(self) -> float | None:
        """US dollars for 1,000 trials; None when a price is unknown, or no trial used the model."""
        cost = self.model.cost_usd
        return None if cost is None or not self.counted else 1000 * cost / self.counted

    def label(self) -> Html:
        """The name with the place before it."""
        return joined((tag("span", str(self.place), class_="place"), " ", tag("bdi", self.name)))

    def heading(self) -> Html:
        return heading(self.label())

    def rate(self) -> Html:
        """The cell of the pass rate."""
        return number(percent(self.model.pass_rate), self.model.pass_rate)


def ranked(models: Sequence[ModelReport]) -> list[Standing]:
    """Best pass rate first, as in the run where they are equal; those without one come last."""
    by_rate = sorted(models, key=lambda model: -1 if model.pass_rate is None else model.pass_rate, reverse=True)
    return [Standing(place, model) for place, model in enumerate(by_rate, 1)]

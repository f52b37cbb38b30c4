"""A part of the report that the navigation leads to."""

from __future__ import annotations

from typing import NamedTuple

from trunchray.pages.html import Html, tag


class Section(NamedTuple):
    """`id` is what a link names."""

    id: str
    title: str
    content: Html

    def markup(self) -> Html:
        title = f"{self.id}-title"
        return tag("section", tag("h2", self.title, id=title), self.content, id=self.id, aria_labelledby=title)

    def link(self) -> Html:
        return tag("a", self.title, href=f"#{self.id}")


def chart(kind: str, caption: str) -> Html:
    """Where a script draws; hidden until it does. The caption stands for the chart where it cannot be seen."""
    return tag("figure", tag("div", class_="canvas"), tag("figcaption", caption), data_chart=kind, hidden=True)


def beside(drawn: Html, shown: Html) -> Html:
    """A chart and its table, side by side where there is room."""
    return tag("div", drawn, shown, class_="beside")


def paragraph(*contents: str) -> Html:
    return tag("p", *contents)

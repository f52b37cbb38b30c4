"""Tables of a page. Each scrolls in a frame of its own; a script of the page lets readers sort them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunchray.pages.html import Html, joined, tag

_FIGURE = '<td class="number'

NONE = Html(f'{_FIGURE} none">–</td>')
"""The cell of what there is not."""


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Html]], *, kind: str = "sortable") -> Html:
    """A table of `<th>` and `<td>` cells under headings of text or markup; `kind` is its class."""
    rows = list(rows)
    columns = zip(headings, _are_figures(rows, len(headings)), strict=True)
    head = tag("tr", *(tag("th", said, scope="col", class_="number" if figures else None) for said, figures in columns))
    body = joined(tag("tr", *row) for row in rows)
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body), class_=kind)
    return tag("div", inner, class_="frame", role="region", aria_label=caption, tabindex=0)


def heading(*contents: str) -> Html:
    """The cell that says what a row is about."""
    return tag("th", *contents, scope="row")


def words(*contents: str) -> Html:
    return tag("td", *contents)


def number(shown: str, value: float | None, *, kind: str = "") -> Html:
    """A figure as people read it, and the value that it is sorted by; `kind` is one more class."""
    if value is None:
        return NONE
    return tag("td", shown, class_=f"number {kind}".rstrip(), data_value=f"{value:.6g}")


def count(many: int | None, *, kind: str = "") -> Html:
    """A whole number."""
    return NONE if many is None else number(f"{many:,}", many, kind=kind)


def _are_figures(rows: Sequence[Sequence[Html]], columns: int) -> list[bool]:
    """Which columns hold figures: their headings stand to the right, as they do."""
    return [any(row[column].startswith(_FIGURE) for row in rows) for column in range(columns)]

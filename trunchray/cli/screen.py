"""Text for people, exactly as it is: nothing in a title, an id or a model's words is taken for markup or a command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trunchray.core.excerpt import excerpt
from trunchray.core.printable import printable

PIPE_WIDTH = 1000
"""Characters a line may have where there is no terminal."""

NAME_WIDTH = 24
"""Characters of a name that are shown on one line before a column of figures is left out."""

_LEAST_NAME = 12
_GAP = 2
"""Blanks between two columns."""


@dataclass(frozen=True)
class Line:
    """One row of a table of figures: a cell for each column."""

    name: str
    cells: Sequence[str | Text]
    style: str | None = None


def console(stream: object) -> Console:
    """A console that prints strings as they are to `stream`, any text file."""
    file = cast("IO[str]", stream)
    width = None if file.isatty() else PIPE_WIDTH
    return _Literal(file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def labelled(label: str, message: str, style: str) -> Text:
    return Text.assemble((f"{label}: ", style), printable(message))


def paragraph(text: str, style: str = "") -> Text:
    """Text that is broken between words where a terminal is too narrow, also in a table that moves."""
    return Text(printable(text), style, no_wrap=False, overflow="fold")


def one_line(text: str, length: int = 200) -> str:
    """The text on one line, at most `length` characters of it."""
    return excerpt(" ".join(text.split()), length)


def fitted(console: Console, name: str, columns: Sequence[tuple[str, int]], lines: Sequence[Line]) -> Table:
    """A table that the terminal has room for: names, which are folded where they are long, then columns of figures.

    A column is a heading and a rank: those of the highest rank are left out first, and named below the table; those of
    rank 0 never are. A file gets all of them, and whole names.
    """
    widths = [max(map(_width, (head, *(line.cells[at] for line in lines)))) for at, (head, _) in enumerate(columns)]
    longest = max(map(_width, (name, *(line.name for line in lines))))
    ranks = sorted({rank for _, rank in columns}, reverse=True) if console.is_terminal else [max(r for _, r in columns)]
    kept, room = list(range(len(columns))), longest
    for most in ranks:
        kept = [at for at, (_, rank) in enumerate(columns) if rank <= most]
        room = console.width - sum(widths[at] + _GAP for at in kept)
        if room >= min(longest, NAME_WIDTH):
            break
    table = figures(name, *(columns[at][0] for at in kept))
    table.columns[0].width = max(_LEAST_NAME, min(longest, room))
    if left_out := [head for at, (head, _) in enumerate(columns) if at not in kept]:
        table.caption, table.caption_justify = paragraph(f"no room for: {', '.join(left_out)}"), "left"
    for line in lines:
        table.add_row(line.name, *(line.cells[at] for at in kept), style=line.style)
    return table


def _width(cell: str | Text) -> int:
    return cell_len(printable(cell) if isinstance(cell, str) else cell.plain)


def figures(name: str, *columns: str) -> Table:
    """An empty table: names on the left, which are folded where they are long, then numbers, which never are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold", min_width=12)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


class _Literal(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

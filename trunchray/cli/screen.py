"""Text for people, exactly as it is: nothing in a title, an id or a model's words is taken for markup or a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import IO, Any, cast

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 200
"""Characters a line may have where there is no terminal."""

NAME_WIDTH = 24
"""Characters of a name that are shown on one line before a column of figures is left out."""

# Control characters, those that turn the direction of writing around, and halves of characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def console(stream: object) -> Console:
    """A console that prints strings as they are to `stream`, any text file."""
    file = cast("IO[str]", stream)
    width = None if file.isatty() else PIPE_WIDTH
    return _Literal(file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def labelled(label: str, message: str, style: str) -> Text:
    return Text.assemble((f"{label}: ", style), printable(message))


def printable(text: str) -> str:
    """The text with each character that could move the cursor or disturb a terminal spelt out, like x1b."""
    return _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: str, length: int = 200) -> str:
    """The text on one line, cut after `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def fitting(console: Console, table: Callable[[int], Table], most: int) -> Table:
    """The widest table the terminal has room for: `table(most)`, or one for a lower number, down to 0."""
    for rank in range(most, 0, -1):
        made = table(rank)
        if _least(console, made) <= console.width:
            return made
    return table(0)


def _least(console: Console, table: Table) -> int:
    """Columns the table takes when its names are folded to `NAME_WIDTH`."""
    names = max((cell_len(str(name)) for name in table.columns[0].cells), default=0)
    whole = console.measure(table, options=console.options.update(width=1000)).maximum
    return whole - max(0, names - NAME_WIDTH)


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

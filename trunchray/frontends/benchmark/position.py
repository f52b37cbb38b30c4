"""Where an authored value stands, and how values are shown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from trunchray.core.excerpt import excerpt
from trunchray.errors import Problem


@dataclass(frozen=True)
class Position:
    """A file, its row (from 1; 0 for the whole file) and a field in it, as JavaScript would write it: `a.b[0]`."""

    path: str
    row: int = 0
    field: str = ""
    of_case: bool = False
    """As of a `Problem`."""

    def at(self, field: str) -> Position:
        """The place of a field inside this one."""
        dot = "." if self.field and field and not field.startswith("[") else ""
        return replace(self, field=f"{self.field}{dot}{field}")

    def problem(self, message: str) -> Problem:
        return Problem(self.path, self.row, self.field, message, self.of_case)

    def __str__(self) -> str:
        if self.of_case:
            return f"case {self.row} of {self.path}"
        return self.path + (f":{self.row}" if self.row else "")


def step_into(field: str, step: int | str) -> str:
    """`field` with one more step: `a.b`, `a[0]`, `a["b c"]`."""
    if isinstance(step, int):
        return f"{field}[{step}]"
    if not re.fullmatch(r"[A-Za-z_$][\w$]*", step):
        return f"{field}[{json.dumps(step)}]"
    return f"{field}.{step}" if field else step


def shown(value: object) -> str:
    """A value for a message: strings as Python writes them, everything else as JSON, cut to 60 characters."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return excerpt(text, 60)

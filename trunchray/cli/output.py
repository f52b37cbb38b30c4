"""What a command says: one JSON value or text on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from pydantic import JsonValue
from rich.console import Console

from trunchray.errors import AuthoringError, TrunchrayError

PIPE_WIDTH = 200
"""Characters a line may have where there is no terminal."""


class Output:
    """Where one command's results, notes and errors go."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.stdout = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPE_WIDTH)
        self.stderr = Console(stderr=True, highlight=False, soft_wrap=True)

    def result(self, value: JsonValue, show: Callable[[Console], None]) -> None:
        """The outcome of the command: `value` with `--json`, else whatever `show` prints."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        else:
            show(self.stdout)

    def note(self, message: str) -> None:
        """One line for people."""
        self.stderr.print(message, markup=False)

    def warn(self, message: str) -> None:
        self.note(f"warning: {message}")

    def error(self, error: TrunchrayError) -> None:
        """A refusal, in words and, with `--json`, as `{"error": …}`."""
        self.note(f"error: {error}" if not isinstance(error, AuthoringError) else _problems(error))
        if self.as_json:
            sys.stdout.write(json.dumps({"error": _described(error)}, ensure_ascii=False, indent=2) + "\n")


def _problems(error: AuthoringError) -> str:
    count = len(error.problems)
    return f"error: {count} problem{'s' if count != 1 else ''}, nothing was written\n{error}"


def _described(error: TrunchrayError) -> JsonValue:
    described: dict[str, JsonValue] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, AuthoringError):
        described["problems"] = [
            {"path": problem.path, "row": problem.row or None, "field": problem.field, "message": problem.message}
            for problem in error.problems
        ]
    return described

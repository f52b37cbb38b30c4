"""What a command says: one JSON value or text on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from trunchray.errors import AuthoringError, Problem, StoreError, TrunchrayError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue
    from rich.console import Console


class Output:
    """Where one command's results, notes and errors go."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def stdout(self) -> Console:
        from trunchray.cli.screen import console

        return console(sys.stdout)

    @cached_property
    def stderr(self) -> Console:
        from trunchray.cli.screen import console

        return console(_Lossy(sys.stderr))

    def result(self, value: JsonValue, show: Callable[[Console], None]) -> None:
        """The outcome of the command: `value` with `--json`, else whatever `show` prints.

        Raises:
            StoreError: it cannot be written; a reader that has gone away is no error.
        """
        with heard():
            if self.as_json:
                _write_json(value)
            else:
                show(self.stdout)

    def note(self, message: str) -> None:
        """One line for people."""
        self.stderr.print(message)

    def warn(self, message: str) -> None:
        self._labelled("warning", message, "yellow")

    def refuse(self, error: TrunchrayError) -> None:
        """An expected error."""
        if isinstance(error, AuthoringError):
            count = len(error.problems)
            problems, these = ("problem", "it is") if count == 1 else ("problems", "these are")
            headline = f"{count} {problems}, nothing was written; more may show once {these} mended\n"
            self._fail(type(error).__name__, str(error), shown=headline + str(error), problems=error.problems)
        else:
            self._fail(type(error).__name__, str(error))

    def refuse_as(self, value: JsonValue, message: str) -> None:
        """An expected error that programs are told of in words of its own."""
        self._labelled("error", message, "bold red")
        with suppress(StoreError), heard():
            _write_json(value)

    def fail(self, kind: str, message: str) -> None:
        """Any other error; `kind` is what programs call it."""
        self._fail(kind, message)

    def _fail(self, kind: str, message: str, *, shown: str | None = None, problems: Sequence[Problem] = ()) -> None:
        self._labelled("error", shown or message, "bold red")
        if self.as_json:
            value: dict[str, JsonValue] = {"type": kind, "message": message}
            if problems:
                value["problems"] = [_described(problem) for problem in problems]
            with suppress(StoreError), heard():
                _write_json({"error": value})

    def _labelled(self, label: str, message: str, style: str) -> None:
        from trunchray.cli.screen import labelled

        self.stderr.print(labelled(label, message, style))


def write_file(path: Path, content: str) -> None:
    """Write a file that was asked for.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"cannot write {str(path)!r}: {e.strerror}; choose another place") from e


def silence(stream: TextIO) -> None:
    """Send what is still to come to nowhere; otherwise the interpreter would complain about it as it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Lossy:
    """A stream that drops what cannot be written: a closed terminal must not end a run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:
        return self._stream.encoding


@contextmanager
def heard() -> Generator[None]:
    """Write to stdout and find out now whether that works.

    Raises:
        StoreError: it does not. A reader that has gone away, as after `| head`, has seen enough.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as e:
        silence(sys.stdout)
        raise StoreError(f"cannot write to stdout: {e.strerror or e}") from e


def _write_json(value: JsonValue) -> None:
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=not unicode, indent=2) + "\n")


def _described(problem: Problem) -> JsonValue:
    place: dict[str, JsonValue] = {"path": problem.path, "row": problem.row or None, "field": problem.field}
    return place | {"message": problem.message}

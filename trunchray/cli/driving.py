"""What all commands that drive a run have in common: how they are named, how they end, and what they say then."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trunchray.adapters.signals import stopping_at
from trunchray.cli.output import Output
from trunchray.core.well_formed import well_formed
from trunchray.errors import Interrupted

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.core.flips import FlipReport
    from trunchray.core.report import ModelReport, Report

ENDS_WITHIN = 9.0
"""Seconds after a signal at which a run ends, finished or not: those that stop processes kill them after ten."""


def command_given(argv: Sequence[str]) -> str:
    """The command as it can be given again, without what nobody else should read; empty when we are part of another."""
    if Path(argv[0]).name not in {"trunchray", "main.py", "__main__.py"}:
        return ""
    words = [re.sub(r"://[^/@\s]*@", "://", word) for word in argv[1:] if word not in {"--takeover", "--json"}]
    return well_formed(shlex.join(["trunchray", *words]))


@contextmanager
def nothing_begun() -> Generator[None]:
    """While a run is prepared: an interrupt then says that nothing was begun.

    Raises:
        Interrupted: in place of KeyboardInterrupt.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted before anything had begun; the same command starts it") from None


@contextmanager
def stop_on_signal(output: Output) -> Generator[threading.Event]:
    """A flag that the first SIGINT or SIGTERM sets; a second one interrupts at once, and so does time."""
    stop, numbers = threading.Event(), (signal.SIGINT, signal.SIGTERM)
    say = partial(output.note, "stopping: storing what is finished …")
    with stopping_at(numbers, stop, say), _last_moment(output, numbers):
        yield stop


@contextmanager
def _last_moment(output: Output, numbers: Collection[int]) -> Generator[None]:
    """Give up some time after a signal, also when it comes while a library keeps us from handling it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    last = threading.Timer(ENDS_WITHIN, _give_up, (output,))
    last.daemon = True

    def watch() -> None:
        while number := os.read(reader, 1)[0]:
            if number in numbers:
                last.start()
                return

    watching = threading.Thread(target=watch, name="trunchray-signals", daemon=True)
    watching.start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writer, b"\0")
        watching.join()
        last.cancel()
        for end in (reader, writer):
            os.close(end)


def _give_up(output: Output) -> None:
    """End at once: a store that does not answer would keep us for a minute, and whoever stops us does not wait."""
    output.fail(
        "Interrupted",
        f"stopped; not all that is finished could be stored within {ENDS_WITHIN:.0f} s. What is stored is kept, and "
        "the same command continues",
    )
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(3)


def ungraded(models: Iterable[ModelReport]) -> int:
    """How many answers of these models could not be graded because an evaluator failed."""
    return sum(error.count for model in models for error in model.errors if error.of_grading)


def tell(
    output: Output,
    report: Report,
    run_uri: str,
    *,
    more: Mapping[str, JsonValue] | None = None,
    flips: FlipReport | None = None,
) -> None:
    """The outcome of the command: the report and where it is, with verdicts that changed; `more` is for programs."""
    from trunchray.adapters.store import Store

    place = Store(run_uri).uri  # whole, whichever way the run was named

    def show(console: Console) -> None:
        from trunchray.cli.regrade_tables import show_flips
        from trunchray.cli.tables import show_report

        show_report(console, report)
        if flips:
            show_flips(console, flips, run_uri)
        console.print(f"report  {place}/report/report.html")

    output.result(report.model_dump(mode="json") | {"uri": place, **(more or {})}, show)

"""What people see of a Python evaluation while it runs."""

from __future__ import annotations

import sys
from io import BytesIO, StringIO, TextIOWrapper

import pytest

from trunchray.core.receipt import Counts
from trunchray.engine.progress import AgentProgress, Snapshot
from trunchray.frontends.evaluation.watching import LINE_EVERY, Watching, show


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def snapshot(done: int, per_minute: float | None = None) -> Snapshot:
    agent = AgentProgress(name="a", planned=1_200, counts=Counts(passed=done), in_flight=4, per_minute=per_minute)
    return Snapshot(run_id="r", agents=(agent,))


def test_a_terminal_shows_one_line_that_is_gone_at_the_end():
    """Each look replaces the one before, and nothing is left where the summary is to be."""
    screen = Terminal()
    with Watching(screen, quiet=False) as watching:
        watching.progress(snapshot(0))
        watching.progress(snapshot(600, per_minute=300))
    assert screen.getvalue().split("\r\x1b[2K") == [
        "",
        "0 of 1,200 runs done, 4 under way",
        "600 of 1,200 runs done, 4 under way, about 2:00 left",
        "",
    ]


def test_a_message_has_a_line_of_its_own_on_a_terminal():
    """The line that changes makes way for it."""
    screen = Terminal()
    with Watching(screen, quiet=False) as watching:
        watching.progress(snapshot(1))
        watching.note("starting Ray")
    assert screen.getvalue().endswith("under way\r\x1b[2Ktrunchray: starting Ray\n")


def test_a_log_gets_a_line_in_ten_seconds():
    """Short evaluations leave no line at all."""
    log, now = StringIO(), [0.0]
    with Watching(log, quiet=False, clock=lambda: now[0]) as watching:
        for second in range(int(2.5 * LINE_EVERY)):
            now[0] = second
            watching.progress(snapshot(second))
    assert log.getvalue() == (
        "trunchray: 10 of 1,200 runs done, 4 under way\ntrunchray: 20 of 1,200 runs done, 4 under way\n"
    )


def test_quiet_evaluations_say_warnings_only():
    """Neither progress nor notes, on a terminal or not."""
    screen = Terminal()
    with Watching(screen, quiet=True) as watching:
        watching.progress(snapshot(1))
        watching.note("starting Ray")
        watching.warn("a part is \x1b[31mdamaged")
    assert screen.getvalue().startswith("trunchray: a part is ")
    assert "\x1b" not in screen.getvalue()


def test_a_reader_that_has_gone_changes_nothing():
    """A closed pipe is no reason to end an evaluation."""

    class Gone(StringIO):
        def write(self, _: str, /) -> int:
            raise BrokenPipeError

    with Watching(Gone(), quiet=False) as watching:
        watching.warn("a part is damaged")


def test_a_result_is_shown_wherever_that_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the stream can encode it; a stream that is closed, full or not there loses no verdict."""
    written = BytesIO()
    ascii_only = TextIOWrapper(written, encoding="ascii", write_through=True)
    closed = StringIO()
    closed.close()
    for stream in (ascii_only, closed, None):
        monkeypatch.setattr(sys, "stdout", stream)
        show("0 (0) – é\n")
    assert written.getvalue() == b"0 (0) \\u2013 \\xe9\n"

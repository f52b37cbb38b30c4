"""What commands say, to people and to programs, and what happens when nobody listens."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from trunchray.cli.output import Output
from trunchray.cli.screen import console, one_line
from trunchray.core.printable import printable
from trunchray.errors import AuthoringError, Problem, StoreError, UsageError

HOSTILE = "[red]x[/red] :smile: \x1b[2J\r\x07\u202egnp.exe \udcff"
SHOWN = r"[red]x[/red] :smile: \x1b[2J\r\x07\u202egnp.exe \udcff"


def test_text_is_shown_as_it_is():
    """Markup, emoji codes and terminal commands in anybody's words are only words."""
    stream = io.StringIO()
    screen = console(stream)
    screen.print(HOSTILE)
    assert stream.getvalue() == SHOWN + "\n"


def test_ordinary_text_is_left_alone():
    """Any script and any symbol can be printed; lines and tabs stay."""
    text = "größer – 日本語 👩‍👩‍👧 עברית\n\tx"
    assert printable(text) == text


def test_lines_are_cut_for_tables():
    """Long text takes one line."""
    assert one_line(" a\n\n b\tc ") == "a b c"
    assert one_line("x" * 300) == "x" * 199 + "…"


def test_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]):
    """Only the result is on stdout."""
    output = Output(as_json=False)
    output.note("[b]so[/b]")
    output.warn(HOSTILE)
    output.result({"a": 1}, lambda screen: screen.print("done"))
    assert capsys.readouterr() == ("done\n", f"[b]so[/b]\nwarning: {SHOWN}\n")


def test_results_for_programs(capsys: pytest.CaptureFixture[str]):
    """With --json the result is one JSON value, in readable characters."""
    Output(as_json=True).result({"title": "größer"}, lambda screen: screen.print("for people"))
    out, err = capsys.readouterr()
    assert json.loads(out) == {"title": "größer"}
    assert "größer" in out
    assert err == ""


def test_errors(capsys: pytest.CaptureFixture[str]):
    """A refusal is a message on stderr, and with --json also a value on stdout."""
    Output(as_json=False).refuse(UsageError("no [such] thing"))
    assert capsys.readouterr() == ("", "error: no [such] thing\n")
    Output(as_json=True).refuse(UsageError("no [such] thing"))
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": {"type": "UsageError", "message": "no [such] thing"}}
    assert err == "error: no [such] thing\n"


def test_problems_of_authors(capsys: pytest.CaptureFixture[str]):
    """Every problem that is known is listed, for programs with its parts."""
    error = AuthoringError(
        [Problem("evals/a.ts", 0, "id", "is missing"), Problem("evals/b.jsonl", 3, "", "is no case")]
    )
    Output(as_json=True).refuse(error)
    out, err = capsys.readouterr()
    headline = "error: 2 problems, nothing was written; more may show once these are mended"
    assert err == f"{headline}\nevals/a.ts: id: is missing\nevals/b.jsonl:3: is no case\n"
    assert json.loads(out)["error"]["problems"] == [
        {"path": "evals/a.ts", "row": None, "field": "id", "message": "is missing"},
        {"path": "evals/b.jsonl", "row": 3, "field": "", "message": "is no case"},
    ]


@pytest.fixture
def gone() -> Iterator[TextIO]:
    """A stream that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream


def test_a_reader_that_has_gone_has_seen_enough(gone: TextIO, monkeypatch: pytest.MonkeyPatch):
    """After `| head` a command ends as it would have, whether it prints text or JSON."""
    monkeypatch.setattr(sys, "stdout", gone)
    for as_json in (False, True):
        Output(as_json=as_json).result(["x" * 100] * 100, lambda screen: screen.print("x" * 10_000))


def test_a_closed_terminal_ends_no_run(gone: TextIO, monkeypatch: pytest.MonkeyPatch):
    """Notes that cannot be written are dropped."""
    monkeypatch.setattr(sys, "stderr", gone)
    for _ in range(3):
        Output(as_json=False).note("x" * 10_000)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_result_that_cannot_be_written_is_an_error(as_json: bool, monkeypatch: pytest.MonkeyPatch):
    """A full disk must not look like success."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(StoreError, match="cannot write to stdout: No space left on device"):
            Output(as_json=as_json).result(["x"], lambda screen: screen.print("x"))


def test_characters_that_the_terminal_lacks(monkeypatch: pytest.MonkeyPatch):
    """JSON stays JSON in any encoding."""
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="latin-1", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)
    Output(as_json=True).result({"title": "日本 é"}, lambda screen: screen.print(""))
    stream.flush()
    assert json.loads(written.getvalue().decode("latin-1")) == {"title": "日本 é"}

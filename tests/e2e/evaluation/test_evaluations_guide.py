"""The guide to Python evaluations is true: its blocks run one after another, and it leaves nothing out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trunchray as package
from support.commands import CommandLine
from support.imported import forgotten
from trunchray import evaluate
from trunchray.frontends.evaluation.dataset import DataCase

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "evaluations.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, flags=re.M | re.S)
ELSEWHERE = {"AuthoringError", "Problem", "ReleaseError", "TrunchrayError"}


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a reader works."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evals" / "capitals.py"
    path.parent.mkdir()
    path.write_text(blocks("python")[0], encoding="utf-8")
    with forgotten(tmp_path):
        yield tmp_path


def test_the_blocks_run_one_after_another(capsys: pytest.CaptureFixture[str]):
    """In one session, and the first one prints what the page shows."""
    session: dict[str, Any] = {"__name__": "__main__"}
    first, *others = blocks("python")
    exec(compile(first, "first", "exec"), session)
    (shown,) = blocks("text")
    assert _unnumbered(capsys.readouterr().out) == _unnumbered(shown)
    for block in others:
        exec(compile(block, "block", "exec"), session)
    printed = capsys.readouterr().out
    assert "False ('Chad',) I do not know." in printed
    assert "{'yes': 0.55, 'no': 0.45}" in printed
    assert "['Chad'] []" in printed
    assert session["brief"](package.RunRecord("a", "b c"))["pass"]
    assert session["one_model_call"](package.RunRecord("a", "b"))
    assert session["patient"]("hello", package.CancelSignal()) == "HELLO"
    assert session["page"].startswith("# capitals\n")


def test_the_commands_do_what_the_page_says(here: Path, capsys: pytest.CaptureFixture[str]):
    """Those that run an evaluation, in this process; the first prints what the page shows."""
    lines = [line.split() for line in "".join(blocks("sh")).splitlines()]
    plain, described = (CommandLine(here, capsys)(*line[1:]) for line in lines if line[0] == "trunchray")
    assert (plain.code, _unnumbered(plain.out)) == (0, _unnumbered(blocks("text")[0]))
    assert described.json["passed"]
    assert ["pytest", "--trunchray-evals"] in lines


def _unnumbered(printed: str) -> str:
    """Without what names the code and counts the runs in the name of a folder."""
    return re.sub("-[0-9a-f]{10}-[0-9]{3}$", "-…", printed, flags=re.M)


def test_every_argument_is_explained():
    """What `evaluate` takes, what a case has, and all names that a program may import are on the page."""
    words = set(re.findall(r"\w+", GUIDE))
    assert set(inspect.signature(evaluate).parameters) <= words
    assert set(package.__all__) - ELSEWHERE <= words
    keys = {"expected": "expectedOutput", "place": "meta"}
    assert {keys.get(name, name) for name in DataCase.model_fields} <= words


def test_links_lead_somewhere():
    """Every file that the page points at is there."""
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target

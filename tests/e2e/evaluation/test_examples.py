"""The examples run as they stand, in both ways, and offline."""

from __future__ import annotations

import json
import re
import runpy
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import CommandLine
from support.imported import forgotten

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*.py") if "evaluation: dict" in path.read_text(encoding="utf-8"))
PORTS = [path for path in FILES if path.parent.name == "ports"]
LINE = re.compile(r"^  (\w+) +(\d+)/(\d+) +(\d+) +(\d+)$", flags=re.M)


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own, and no way out of this machine."""

    def refused(*_: object, **__: object) -> None:
        raise OSError("examples call nobody")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refused)
    with forgotten(EXAMPLES):
        yield


def script(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What `python PATH` prints."""
    monkeypatch.setattr(sys, "argv", [str(path), *argv])
    monkeypatch.syspath_prepend(path.parent)
    runpy.run_path(str(path), run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_one_of_these():
    """Three examples and five ports."""
    assert [path.stem for path in FILES if path not in PORTS] == ["refund_agent", "retrieval", "workflow"]
    assert [path.stem for path in PORTS] == ["battle", "factuality", "faithfulness", "helpfulness", "keywords"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_run_from_the_command_line(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """`trunchray eval run` passes, and every run that it makes has an output unless that is the point."""
    done = CommandLine(tmp_path, capsys)("eval", "run", str(path), "--json")
    assert (done.code, done.err) == (0, "")
    failed = [case["name"] for case in done.json["cases"] if "error" in case]
    assert failed == (["in words"] if path.stem == "workflow" else [])


@pytest.mark.parametrize("path", [path for path in FILES if path not in PORTS], ids=lambda path: path.stem)
def test_examples_run_as_scripts(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """`python` passes them, too, and prints more than the summary."""
    printed = script(path, monkeypatch, capsys)
    assert "passed: every limit is kept" in printed
    assert {"refund_agent": "llm → find_order → llm → refund → llm"}.get(path.stem, "## Failed") in printed


@pytest.mark.parametrize("path", PORTS, ids=lambda path: path.stem)
def test_ports_agree_more_than_a_naive_baseline(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A port says on how many labels its check and the baseline agree, and where the answers of its judge are from."""
    printed = script(path, monkeypatch, capsys)
    (_, check, cases, *_), (name, naive, *_) = LINE.findall(printed)
    assert name == "naive"
    assert int(naive) < int(check) <= int(cases)
    assert ("judged by code" if path.stem == "keywords" else "recorded; no model was asked") in printed
    assert "not judged" not in printed


def test_a_port_asks_the_model_that_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """With `--model` nothing recorded is used; a model that cannot answer passes nothing, and the port says why."""
    printed = script(EXAMPLES / "ports" / "factuality.py", monkeypatch, capsys, "--model", "mock/echo")
    assert "judged by mock/echo" in printed
    assert "not judged: judge: parse-error" in printed
    (_, check, _, wrongly, _), _ = LINE.findall(printed)
    assert (int(check), int(wrongly)) == (6, 0)


@pytest.mark.parametrize("path", PORTS, ids=lambda path: path.stem)
def test_recorded_answers_say_what_they_are(path: Path):
    """No file of labelled answers can be taken for a measurement of a model."""
    held: Any = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    recorded = [case["recorded"] for case in held["cases"] if "recorded" in case]
    assert all(abs(sum(shares.values()) - 1) < 0.001 for shares in recorded)
    assert len(recorded) in (0, len(held["cases"]))
    said = "No model was asked, and nothing follows from them about any." if recorded else "No judge is asked."
    assert said in held["about"]

"""Functions that go on after their time: what they leave behind is bounded, and on Ray it is ended."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trunchray import EvalFailure, Interrupted, evaluate
from trunchray.engine.worker import MOST_HANGING


def test_workers_that_hold_such_functions_are_ended(tmp_path: Path, ray_here: None):
    """Others take their places while the run goes on; every case is run once, and nothing waits for those that hang."""
    log, numbers = tmp_path / "log", range(40)

    def task(number: int) -> int:
        own = tmp_path / f"hung-{os.getpid()}"
        hangs = not own.exists() and len(list(tmp_path.glob("hung-*"))) < 2
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{number} {os.getpid()} {hangs}\n")
        if hangs:
            own.touch()
            time.sleep(86_400)
        time.sleep(1.5 if own.exists() else 0)  # so that there is work left for who comes after
        return number

    data = [{"name": str(number), "input": number, "expectedOutput": number} for number in numbers]
    with pytest.raises(EvalFailure) as refused:
        evaluate(name="hanging", task=task, data=data, timeout="8s", pool="ray", out=str(tmp_path), quiet=True)
    runs = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    hung = {number: process for number, process, hangs in runs if hangs == "True"}  # two may begin in one at once
    assert Counter(number for number, *_ in runs) == dict.fromkeys(map(str, numbers), 1)
    assert set(refused.value.report.scorers["matches"].failed) == set(hung)
    assert {case.error for case in refused.value.report.cases} == {None, "timed out after 8 s"}
    assert len({process for _, process, _ in runs} - set(hung.values())) >= 1
    for process in hung.values():
        until_ended(int(process))


def test_a_program_holds_so_many_of_them(tmp_path: Path):
    """Then no further case is begun; what has finished is stored, and the call goes on when they have ended."""
    released, log, numbers = threading.Event(), tmp_path / "log", range(2 * MOST_HANGING + 8)

    def task(number: int) -> int:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        released.wait()
        return number

    settings: dict[str, Any] = {
        "name": "hanging",
        "task": task,
        "data": [{"name": str(number), "input": number, "expectedOutput": number} for number in numbers],
        "concurrency": MOST_HANGING,
        "timeout": "500ms",
        "out": str(tmp_path / "runs"),
        "quiet": True,
    }
    try:
        with pytest.raises(Interrupted, match=f"{MOST_HANGING} calls that ran out of time go on in threads"):
            evaluate(**settings)
    finally:
        begun = len(log.read_text(encoding="utf-8").split())
        released.set()
    assert MOST_HANGING <= begun < 2 * MOST_HANGING  # others may have begun before the first ones ran out of time
    with pytest.raises(EvalFailure) as refused:
        evaluate(**settings)
    assert refused.value.report.scorers["matches"].misses >= MOST_HANGING
    runs = log.read_text(encoding="utf-8").split()
    assert set(runs) == set(map(str, numbers))
    assert len(runs) <= len(numbers) + begun - MOST_HANGING  # those again that were under way


def until_ended(process: int) -> None:
    while Path(f"/proc/{process}").exists():
        threading.Event().wait(0.05)  # it is nobody's child here

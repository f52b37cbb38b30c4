"""How often, and how many at a time, the cases of an evaluation are run."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.places import unplaced
from trunchray import EvalFailure, RunRecord, evaluate


class Crowd:
    """Knows which cases are under way, and with how many attempts."""

    def __init__(self) -> None:
        self.inside = Counter[int]()
        self.most_attempts = self.most_cases = 0
        self.outputs: dict[int, list[int]] = {}

    async def task(self, number: int) -> int:
        self.inside[number] += 1
        self.most_attempts = max(self.most_attempts, self.inside[number])
        self.most_cases = max(self.most_cases, sum(1 for count in self.inside.values() if count))
        for _ in range(20):  # turns of the event loop in which another attempt could begin
            await asyncio.sleep(0)
        return number

    def check(self, run: RunRecord) -> bool:
        """Part of the attempt: the next one begins after it."""
        self.inside[run.output] -= 1
        self.outputs.setdefault(run.output, []).append(sum(self.inside.values()))
        return True


@pytest.mark.parametrize(("cases", "concurrency"), [(1, 4), (3, 8), (5, 2), (20, 4)])
def test_attempts_at_a_case_come_one_after_another(tmp_path: Path, cases: int, concurrency: int):
    """`repeats` takes one case's slot and no more: no attempt begins before the one before it has been checked."""
    crowd = Crowd()
    report = evaluate(
        name="crowd",
        task=crowd.task,
        data=[{"input": number} for number in range(cases)],
        scorers={"left": crowd.check},
        repeats=3,
        concurrency=concurrency,
        pool="local",
        out=str(tmp_path),
        quiet=True,
    )
    assert crowd.most_attempts == 1
    assert crowd.most_cases <= concurrency
    assert {number: len(found) for number, found in crowd.outputs.items()} == dict.fromkeys(range(cases), 3)
    assert report.scorers["left"].passes == cases


def test_a_case_is_shown_by_its_first_attempt_that_failed(tmp_path: Path):
    """Of attempts of which some fail: the output, the error and the explanation are of the same one, the value is of
    all."""
    attempts = Counter[str]()

    def flaky(name: str) -> str:
        attempts[name] += 1
        if name == "raises" and attempts[name] == 3:
            raise ValueError("third")
        return f"{name} {attempts[name]}"

    with pytest.raises(EvalFailure) as failed:
        evaluate(
            name="flaky",
            task=flaky,
            data=[{"input": name} for name in ("raises", "wrong", "right")],
            scorers={"ok": lambda run: {"pass": run.output not in ("wrong 2", "wrong 4"), "explanation": run.output}},
            repeats=4,
            pool="local",
            out=str(tmp_path),
            quiet=True,
        )
    found = [(case.output, case.error, case.checks["ok"]) for case in failed.value.report.cases]
    assert [(output, error and unplaced(error)) for output, error, _ in found] == [
        (None, "ValueError: third"),
        ("wrong 2", None),
        ("right 1", None),
    ]
    assert [(check.passed, check.value, unplaced(check.explanation or "")) for *_, check in found] == [
        (False, 0.75, "run failed: ValueError: third (failed 1 of 4 attempts)"),
        (False, 0.5, "wrong 2 (failed 2 of 4 attempts)"),
        (True, 1, "right 1"),
    ]


@pytest.mark.parametrize(
    ("setting", "usual"),
    [("repeats", 1), ("concurrency", 4), ("timeout", "60s"), ("quiet", False), ("scorers", None), ("allow", None)],
)
def test_what_holds_unless_something_else_is_said(setting: str, usual: Any):
    """One attempt, four cases at a time, sixty seconds for each run and each check, and a summary."""
    assert inspect.signature(evaluate).parameters[setting].default == usual

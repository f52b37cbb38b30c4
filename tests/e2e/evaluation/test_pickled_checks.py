"""Checks survive the way to other processes."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from support.checked import a_run
from trunchray.evaluators.judges.scripted import ScriptedJudge
from trunchray.evaluators.python.asking import ask
from trunchray.evaluators.python.code_check import run_check
from trunchray.evaluators.python.comparing import includes, matches
from trunchray.evaluators.python.judging import judge_checks
from trunchray.evaluators.python.schema import fits_schema
from trunchray.evaluators.python.scorer import CodeScorer, Scorer, as_scorers
from trunchray.evaluators.python.trajectory import ran_steps, steps_at_most, under
from trunchray.evaluators.python.words import avoids, mentions

cloudpickle = pytest.importorskip("ray.cloudpickle")


def local_scorers() -> dict[str, Any]:
    """Of all kinds, and none of them can be imported where they are unpickled."""

    class Reply(BaseModel):
        n: int

    class Checker:
        def __init__(self, n: int) -> None:
            self.n = n

        async def __call__(self, run: Any) -> bool:
            return run.output["n"] == self.n

    wanted = 1

    def closure(run: Any) -> bool:
        return run.output["n"] == wanted

    return {
        "matches": matches(),
        "accessor": matches(lambda found: found["n"] == wanted),
        "field": matches("n"),
        "includes": includes(),
        "model": fits_schema(Reply),
        "adapter": fits_schema(TypeAdapter(dict[str, int])),
        "json schema": fits_schema({"type": "object"}),
        "function": fits_schema(lambda output: output["n"] == wanted),
        "mentions": mentions(["n"]),
        "words": mentions(lambda run: [str(wanted)]),
        "avoids": avoids(["m"]),
        "ran": ran_steps(["a"]),
        "most": steps_at_most(1),
        "under": under(ms=100),
        "closure": closure,
        "object": Checker(1),
        "partial": functools.partial(lambda n, run: run.output["n"] == n, 1),
        "question": "Is it?",
        "bars": {"question": "Is it?", "yes": 0.9},
        "options": ask("Q?", options=["a", "b"], pass_="a"),
        "levels": ask("Q?", levels=["a", "b"], pass_="a"),
    }


RUN = a_run({"n": 1}, {"n": 1}, steps="a")


async def passes(scorer: Scorer) -> bool:
    if isinstance(scorer, CodeScorer):
        return (await run_check(scorer.check, RUN, 60)).passed
    answers = {"a": 1.0, "b": 0.0} if "a" in scorer.rule.answers else 1.0
    return (await judge_checks({"it": scorer}, RUN, ScriptedJudge({"it": answers}), 60))["it"].passed


@pytest.mark.parametrize("name", list(local_scorers()))
async def test_every_check_survives_pickling(name: str) -> None:
    """It decides the same, and its digest is the one it had where it was written."""
    scorer = as_scorers({name: local_scorers()[name]})[name]
    again = pickle.loads(cloudpickle.dumps(scorer))
    assert again.digest == scorer.digest
    assert await passes(again) == await passes(scorer) == (name != "includes")


def test_checks_of_a_script_work_in_a_process_that_lacks_it(tmp_path: Path) -> None:
    """Workers need not be able to import what the driver runs."""
    names = ("closure", "model", "object", "question")
    scorers = as_scorers({name: local_scorers()[name] for name in names})
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        (tmp_path / "scorers").write_bytes(cloudpickle.dumps(scorers))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    code = "import pickle, sys; print(*(each.digest for each in pickle.load(open(sys.argv[1], 'rb')).values()))"
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "scorers")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.split() == [scorers[name].digest for name in names], found.stderr


def test_checks_that_hang_keep_no_process_alive(tmp_path: Path) -> None:
    """One waits for ever, one computes for ever, one waits in the event loop: all fail, and the process ends."""
    script = tmp_path / "hanging.py"
    script.write_text(HANGING, encoding="utf-8")
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert (found.stdout.split("\n"), found.returncode) == (["timed out after 0.2 s"] * 3 + ["None", ""], 0), (
        found.stderr
    )


HANGING = """
import asyncio, threading
from trunchray.core.record import RunRecord
from trunchray.evaluators.python.code_check import run_check

def waits(run):
    threading.Event().wait()

def computes(run):
    while True:
        pass

async def sleeps(run):
    await asyncio.get_running_loop().create_future()

async def main():
    hanging = [run_check(each, RunRecord("in", "out"), 0.2) for each in (waits, computes, sleeps)]
    found = await asyncio.gather(*hanging, run_check(lambda run: True, RunRecord("in", "out"), 60))
    print(*(each.explanation for each in found), sep="\\n")

asyncio.run(main())
"""

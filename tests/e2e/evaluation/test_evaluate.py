"""One call evaluates a function: run, checked, gated, kept and continued, in this process and on Ray."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import trunchray
from support.places import unplaced
from trunchray import EvalFailure, Interrupted, RunRecord, StoreError, UsageError, aevaluate, evaluate
from trunchray.cli.main import run_command
from trunchray.core.evaluation import EvaluationReport


def upper(text: str) -> str:
    return text.upper()


def is_upper(r: RunRecord) -> bool:
    return r.output == r.output.upper()


CASES = [{"input": name, "expectedOutput": name.upper()} for name in "abcdefghij"]


class Log:
    """What tasks in any process have written down: a line for each run."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __call__(self, text: str) -> None:
        with Path(self._path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def lines(self) -> list[str]:
        return Path(self._path).read_text(encoding="utf-8").split()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "runs")


def nested(levels: int) -> Any:
    """Lists within each other."""
    return [] if levels == 1 else [nested(levels - 1)]


def unmeasured(report: EvaluationReport) -> Any:
    """What two runs of the same have in common."""
    found = report.to_json()
    found.pop("run", None)
    for case in found["cases"]:
        case.pop("ms")
    return found


def test_a_function_is_evaluated(out: str, capsys: pytest.CaptureFixture[str]):
    """Every case is run and compared with its expected output, in the order of the data, and the summary is printed."""
    report = evaluate(name="upper", task=upper, data=CASES, pool="local", out=out)
    assert report.passed
    assert [case.name for case in report.cases] == list("abcdefghij")
    assert [case.output for case in report.cases] == list("ABCDEFGHIJ")
    assert report.scorers["matches"].passes == 10
    assert "upper passed" in capsys.readouterr().out


def test_a_failed_gate(out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Raises with the limit, the cases and the whole report; the experiment is saved all the same."""
    data = [*CASES, {"input": "x", "expectedOutput": "y"}]
    with pytest.raises(EvalFailure, match="matches: 1 miss, 0 allowed: 'x'") as failed:
        evaluate(name="upper", task=upper, data=data, out=out, save=tmp_path / "last.json", quiet=True)
    assert failed.value.report.scorers["matches"].misses == 1
    assert json.loads((tmp_path / "last.json").read_bytes())["cases"]["x"]["matches"]["pass"] is False
    assert capsys.readouterr().out == ""


def test_one_file_to_compare_with_and_to_save_to(out: str, tmp_path: Path):
    """It is read before the first run and replaced after the last one: what passed then may not fail now."""
    last = tmp_path / "last.json"

    def judged(task: Any) -> EvaluationReport:
        return evaluate(
            name="upper", task=task, data=CASES, allow={"matches": 3}, compare=last, save=last, out=out, quiet=True
        )

    assert judged(upper).flips.broke == ()
    with pytest.raises(EvalFailure, match="matches: 1 drop, 0 allowed: 'c'"):
        judged(lambda text: "?" if text == "c" else text.upper())
    assert [flip.case for flip in judged(upper).flips.fixed] == ["c"]


def test_an_experiment_of_this_process_is_a_baseline(out: str):
    """Without any file."""
    before = evaluate(name="upper", task=upper, data=CASES, out=out, quiet=True)
    with pytest.raises(EvalFailure, match="drop"):
        evaluate(
            name="upper",
            task=str.lower,
            data=CASES,
            allow={"matches": {"miss": 10}},
            compare=before.experiment,
            out=out,
            quiet=True,
        )


def test_as_many_cases_are_under_way_as_allowed(pool: str, out: str, tmp_path: Path):
    """So many at a time, and no more, on however many workers; checks are part of a case's turn."""
    here = Crowd(tmp_path / "crowd")
    evaluate(
        name="crowd",
        task=here.run,
        data=[{"input": number} for number in range(40)],
        scorers={"done": here.check},
        concurrency=4,
        pool=pool,
        out=out,
        quiet=True,
    )
    assert here.most() == 4


class Crowd:
    """Counts who is there, in files, so that several processes count together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def run(self, number: int) -> int:
        (self._folder / f"{number}.here").touch()
        while len(self._those("begun")) + len(self._those("here")) < 4:  # nobody leaves before four have come
            threading.Event().wait(0.01)
        (self._folder / f"{number}.seen").write_text(str(len(self._those("here"))), encoding="utf-8")
        return number

    def check(self, r: RunRecord) -> bool:
        (self._folder / f"{r.output}.here").rename(self._folder / f"{r.output}.begun")
        return True

    def most(self) -> int:
        return max(int(path.read_text(encoding="utf-8")) for path in self._those("seen"))

    def _those(self, kind: str) -> list[Path]:
        return list(self._folder.glob(f"*.{kind}"))


def test_repeats(out: str):
    """A check passes when every attempt passes; its value is the mean."""
    seen = Counter[str]()

    def flaky(text: str) -> str:
        seen[text] += 1
        return text.upper() if seen[text] % 2 else text

    with pytest.raises(EvalFailure) as failed:
        evaluate(name="flaky", task=flaky, data=CASES[:3], repeats=2, out=out, quiet=True)
    results = [case.checks["matches"] for case in failed.value.report.cases]
    assert [(result.passed, result.value) for result in results] == [(False, 0.5)] * 3
    assert set(seen.values()) == {2}


def test_a_task_that_raises_fails_its_checks(out: str):
    """Its siblings go on, and so do other cases: nothing of it is an error of the evaluation."""

    def task(text: str) -> str:
        if text == "b":
            raise ValueError("no such customer")
        return text.upper()

    with pytest.raises(EvalFailure) as failed:
        evaluate(
            name="raises",
            task=task,
            data=CASES,
            scorers={"upper": is_upper, "any": any_output},
            out=out,
            quiet=True,
            pool="local",
        )
    report = failed.value.report
    assert report.scorers["upper"].failed == ("b",) == report.scorers["any"].failed
    (case,) = [case for case in report.cases if case.name == "b"]
    assert unplaced(case.error or "") == "ValueError: no such customer"
    assert case.checks["upper"].explanation == f"run failed: {case.error}"


def any_output(r: RunRecord) -> bool:
    return True


RETURNED: dict[str, tuple[Any, Any]] = {
    "text": ("7", "7"),
    "number": (7, 7),
    "nothing": (None, None),
    "date": (date(2026, 1, 2), "2026-01-02"),
    "time": (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00Z"),
    "path": (Path("a/b"), "a/b"),
    "path of digits": (Path("2026"), "2026"),
    "bytes": (b"null", "null"),
    "uuid": (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    "pattern": (re.compile("a+"), "a+"),
    "enumeration": (Enum("E", {"A": date(2026, 1, 2)}).A, "2026-01-02"),
    "dates": ([date(2026, 1, 2)], ["2026-01-02"]),
    "no number": (float("nan"), "nan"),
    "object": (complex, "<class 'complex'>"),
    "101 levels": (nested(101), repr(nested(101))),
    "100 levels": (nested(100), nested(100)),
}


@pytest.mark.parametrize("name", RETURNED)
def test_whatever_a_task_returns_is_reported(out: str, name: str):
    """As JSON has it, text for what is text there, or else as Python prints it."""
    returned, reported = RETURNED[name]
    report = evaluate(name="odd", task=lambda _: returned, data=[{"input": 1}], scorers={"any": _true}, out=out)
    (found,) = report.cases
    assert (found.output, type(found.output), found.error) == (reported, type(reported), None)


def _true(_: RunRecord) -> bool:
    return True


def test_a_task_that_hangs_is_given_up(out: str):
    """A function that ignores its signal costs its own case only, and does not keep the process."""
    forever = threading.Event()

    def task(text: str) -> str:
        if text == "b":
            forever.wait()
        return text.upper()

    with pytest.raises(EvalFailure) as failed:
        evaluate(name="hangs", task=task, data=CASES, timeout="200ms", concurrency=1, out=out, quiet=True)
    forever.set()
    assert failed.value.report.scorers["matches"].failed == ("b",)
    assert "timed out" in failed.value.report.cases[1].error


async def insists(r: RunRecord) -> bool:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def stops_the_loop(r: RunRecord) -> bool:
    asyncio.get_running_loop().stop()
    return True


async def leaves_an_exit_behind(r: RunRecord) -> bool:
    async def exits() -> None:
        raise SystemExit(3)

    await asyncio.wait({asyncio.create_task(exits())})
    return True


async def fills_all_threads(r: RunRecord) -> bool:
    await asyncio.gather(*(asyncio.to_thread(threading.Event().wait) for _ in range(50)))
    return True


def test_checks_cannot_keep_an_evaluation_from_ending(out: str):
    """Not one that goes on though it is cancelled, nor one that takes the event loop or all threads from others."""
    checks = {check.__name__: check for check in (insists, stops_the_loop, leaves_an_exit_behind, fills_all_threads)}
    with pytest.raises(EvalFailure) as failed:
        evaluate(name="stubborn", task=upper, data=CASES, scorers=checks, timeout="500ms", out=out, quiet=True)
    report = failed.value.report
    late = {name: each.misses for name, each in report.scorers.items() if each.misses}
    assert late == {"insists": 10, "fills_all_threads": 10}
    assert {report.cases[0].checks[name].explanation for name in late} == {"timed out after 0.5 s"}


async def cancels_everything(text: str) -> str:
    for task in asyncio.all_tasks():
        task.cancel()
    return text


def test_a_task_that_cancels_what_is_not_its_own_ends_in_an_error(out: str):
    """The evaluation is incomplete then, and does not wait for what nobody runs any more."""
    with pytest.raises(Interrupted, match=r"^incomplete: . of 10 runs of 'cancels' are stored"):
        evaluate(name="cancels", task=cancels_everything, data=CASES, out=out, quiet=True)


def test_must_and_skip(out: str):
    """A case's `must` beats what is allowed; what it skips is neither run nor counted."""
    data = [
        {"input": "a", "must": ["matches"]},
        {"input": "b", "skip": ["matches"]},
        {"input": "c", "expectedOutput": "C"},
    ]
    with pytest.raises(EvalFailure, match="must") as failed:
        evaluate(name="must", task=upper, data=data, allow={"matches": 5}, out=out, quiet=True)
    report = failed.value.report
    assert report.cases[1].checks == {}
    assert (report.scorers["matches"].passes, report.scorers["matches"].misses) == (1, 1)


def test_an_event_loop_that_runs_already(out: str):
    """Async tasks run on the loop of the caller, where what they share with it works."""

    async def main() -> EvaluationReport:
        queue: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def task(text: str) -> str:
            assert asyncio.get_running_loop() is loop
            await queue.put(text)
            return (await queue.get()).upper()

        return await aevaluate(name="loop", task=task, data=CASES[:1], out=out, quiet=True)

    assert asyncio.run(main()).passed


async def test_in_a_running_event_loop_it_has_to_be_awaited(out: str):
    """The loop would stand still; inside of a task of an evaluation that runs on it, for ever."""
    with pytest.raises(UsageError, match="write `await aevaluate"):
        evaluate(name="blocks", task=upper, data=CASES, out=out, quiet=True)

    async def nested(text: str) -> str:
        return str(evaluate(name="inside", task=upper, data=CASES, out=out, quiet=True).passed)

    with pytest.raises(EvalFailure) as failed:
        await aevaluate(name="outside", task=nested, data=CASES[:1], out=out, quiet=True)
    assert "write `await aevaluate" in failed.value.report.cases[0].error


class Answering:
    """Has whatever it is asked for: there is no end to what it wraps."""

    def __getattr__(self, name: str) -> Any:
        if name in ("send", "__setstate__"):
            raise AttributeError(name)
        return self

    def __call__(self, text: Any) -> Any:
        return "A"


def test_a_task_that_has_whatever_it_is_asked_for(tmp_path: Path):
    """Stand-ins for other objects are callables like others. A folder may be given as a path."""
    assert evaluate(name="stands in", task=Answering(), data=CASES[:1], out=tmp_path, quiet=True).passed


async def test_many_at_the_same_time_on_one_event_loop(out: str):
    """More than there are threads that Python lends to a loop."""
    calls = [
        aevaluate(name="many", task=upper, data=CASES[:1], about={"number": number}, out=out, quiet=True)
        for number in range(40)
    ]
    assert all(report.passed for report in await asyncio.gather(*calls))


def test_a_task_that_goes_elsewhere_takes_no_file_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Relative paths are from where the call was made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def leaves(text: str) -> str:
        os.chdir(tmp_path / "elsewhere")
        return text.upper()

    evaluate(name="leaves", task=leaves, data=CASES, save="e.json", quiet=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.json", "elsewhere", "runs"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_cancelled_call_goes_on_where_it_was(out: str, log: Log):
    """What was finished is not run again."""

    async def main() -> None:
        enough = asyncio.Event()

        async def task(text: str) -> str:
            log(text)
            if len(log.lines()) == 6:
                enough.set()
                await asyncio.sleep(3600)
            return text.upper()

        def call() -> Any:
            return aevaluate(name="cancelled", task=task, data=CASES, concurrency=1, out=out, quiet=True)

        first = asyncio.ensure_future(call())
        await enough.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await call()).passed

    asyncio.run(main())
    counts = Counter(log.lines())
    assert set(counts) == set("abcdefghij")
    assert sorted(counts.values()) == [1] * 9 + [2]


def test_what_has_ended_begins_anew(out: str, log: Log):
    """Models say another thing each time: a call that has its report does not get the old one again."""

    def task(text: str) -> str:
        log(text)
        return text.upper()

    for _ in range(2):
        evaluate(name="again", task=task, data=CASES, out=out, quiet=True)
    assert Counter(log.lines()) == Counter("abcdefghij" * 2)


def test_both_pools_give_the_same_report(ray_here: None, out: str):
    """But for the times: what passes, what fails, and what a function that raises said."""
    scorers = {"matches": trunchray.matches(), "upper": is_upper, "half": lambda r: 0.5}

    def task(text: str) -> str:
        if text == "b":
            raise ValueError("no such customer")
        return text.upper()

    reports = []
    for pool in ("local", "ray"):
        with pytest.raises(EvalFailure) as failed:
            evaluate(name="same", task=task, data=CASES, scorers=scorers, repeats=2, pool=pool, out=out, quiet=True)
        reports.append(unmeasured(failed.value.report))
    assert reports[0] == reports[1]
    assert ["error" in case for case in reports[1]["cases"]] == [text == "b" for text in "abcdefghij"]


def test_a_worker_that_dies_costs_what_is_in_flight(ray_here: None, out: str, log: Log):
    """A task that takes its process with it is run again elsewhere; every case counts once."""

    def task(text: str) -> str:
        log(text)
        if text == "e" and log.lines().count("e") == 1:
            os._exit(1)
        return text.upper()

    report = evaluate(name="dies", task=task, data=CASES, concurrency=2, pool="ray", out=out, quiet=True)
    assert report.passed
    assert len(report.cases) == 10
    assert log.lines().count("e") == 2


def test_what_cannot_be_sent_to_workers(ray_here: None, out: str):
    """Is refused with the way out, before anything runs."""
    lock = threading.Lock()

    def task(text: str) -> str:
        with lock:
            return text

    with pytest.raises(UsageError, match=r"cannot be sent to Ray workers: .*pool='local'"):
        evaluate(name="lock", task=task, data=CASES, pool="ray", out=out, quiet=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"task": 3}, "task"),
        ({"data": []}, "there is no case"),
        ({"scorers": {}}, "scorers is empty"),
        ({"scorers": {"ready": "Is it ready?"}}, "judge"),
        ({"allow": {"match": 1}}, "match"),
        ({"allow": {"matches": -1}}, "matches"),
        ({"repeats": 0}, "repeats: expected a whole number from 1 to 1,000, got 0"),
        ({"concurrency": True}, "concurrency: expected a whole number"),
        ({"timeout": "soon"}, "timeout"),
        ({"compare": {"format": 1, "name": "x", "cases": {}}}, "format"),
        ({"save": "/"}, "save"),
        ({"name": ""}, "name: expected a text"),
        ({"name": "half \ud83d"}, "name: expected a text"),
        ({"about": [1]}, "about: expected a mapping"),
        ({"about": {"seed": 2**60}}, "about: "),
        ({"out": None}, "out: expected a folder or a URI, got None"),
        ({"pool": "moon"}, "pool"),
        ({"address": 3}, "address: expected the address of a Ray cluster, got 3"),
        ({"out": "ftp://localhost:1/runs"}, "cannot open 'ftp://localhost:1/runs'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(tmp_path: Path, wrong: dict[str, Any], message: str):
    """Before anything runs or is written."""
    ran: list[str] = []
    asked: dict[str, Any] = {"name": "x", "task": ran.append, "data": CASES, "out": str(tmp_path / "runs"), **wrong}
    with pytest.raises(UsageError, match=message):
        evaluate(**asked)
    assert ran == []
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_written(tmp_path: Path):
    """Is an error of ours, not of any case."""
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises((StoreError, UsageError)):
        evaluate(name="x", task=upper, data=CASES, out=str(tmp_path / "runs"), quiet=True)


def test_other_commands_know_the_run(out: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """It is reported on, compared, gated and exported as every run; what needs its code is refused with the way on."""
    evaluate(name="upper", task=upper, data=CASES, out=out, quiet=True)
    (run,) = Path(out).glob("upper-*")

    def said(*command: str) -> tuple[int, str]:
        code = run_command(list(command))
        told = capsys.readouterr()
        return code, told.out + told.err

    for command in (["report"], ["status"], ["gate", "--allow", "overall=0"], ["compare", str(run)]):
        code, text = said(command[0], str(run), *command[1:])
        assert code == 0, text
    for form in ("csv", "jsonl", "inspect", "openai-evals"):
        code, text = said("export", str(run), "--to", form, "--out", str(tmp_path / form))
        assert code == 0, text
    code, text = said("regrade", str(run))
    assert (code, "call `trunchray.evaluate`" in text) == (2, True)

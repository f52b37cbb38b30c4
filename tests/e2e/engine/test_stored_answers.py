"""Answers that are stored are graded again, and never asked for again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from support.commands import edit
from support.provider import CountingProvider
from support.releases import make_release
from support.runs import Onlooker, drive, question, rows
from trunchray.adapters import parts
from trunchray.adapters.lease import HeldLease
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import Mock, ModelAgent, Pacing, Price
from trunchray.core.budget import total
from trunchray.core.receipt import Counts, Marks
from trunchray.core.run import Selection
from trunchray.engine.launch import Launch, report_again
from trunchray.engine.regrade import Regraded, prepare_regrade, regrade_errors
from trunchray.engine.retrying import prepare_retry
from trunchray.engine.seating import Seating
from trunchray.errors import ReleaseError, UsageError

CASES = 60
ECHO = ModelAgent(name="m", model="mock/echo", mock=Mock())
GRADED = ("outcome", "passed", "score", "message", "details", "evaluator_digest", "failure")
NEW = ("trial_key", "release_digest", "reused", "latency", "ended_at", "worker", "versions")
"""Columns of a regraded row that are others than those of the row that was answered."""
SLOW = b"""export default { evaluate: ({ output, caseData }) => {
  let sum = 0;
  for (let n = 0; n < 2e7; n++) sum += Math.sqrt(n);
  return sum > 0 && caseData.number % 2 === 0;
} }"""


def how(pool: Any = "local", **changes: Any) -> Launch:
    return replace(Launch("", Onlooker(), pool=pool, seating=Seating(workers=1)), **changes)


def regrade(run: Path | str, release: StoredRelease | None = None, *, pool: str = "local", **asked: Any) -> Regraded:
    return prepare_regrade(str(run), release, **asked)(how(pool))


def contains(expected: Callable[[int], str]) -> Callable[[int], dict[str, str]]:
    return lambda number: {"kind": "contains", "expected": expected(number)}


@pytest.fixture
def lenient(tmp_path: Path) -> StoredRelease:
    return make_release(tmp_path / "lenient", CASES, check=contains(lambda _: "prompt"))


@pytest.fixture
def strict(tmp_path: Path) -> StoredRelease:
    """Of every third case any answer is right, of the others those that begin with 1."""
    return make_release(tmp_path / "strict", CASES, check=contains(lambda n: "prompt 1" if n % 3 else "prompt"))


def answered(release: StoredRelease, out: Path, *, failing: Collection[int] = (), **changes: object) -> Path:
    """A run of a model that is gone by now."""
    with CountingProvider() as provider:
        provider.failing = {f"prompt {number}": 400 for number in failing}
        agent = ModelAgent(
            name="m",
            model="local/m",
            base_url=provider.base_url,
            price=Price(input=1, output=2),
            pacing=Pacing(max_in_flight=2, max_retries=0),
        )
        drive(question(release, [agent], **changes), release, out)
    return out / "test"


def test_a_changed_grader_flips_what_it_changes(
    pool: str, tmp_path: Path, lenient: StoredRelease, strict: StoredRelease
):
    """The list of flips is exactly that of the verdicts that the new grader changes; answers are those of the source,
    and a source error stays one."""
    run = answered(lenient, tmp_path, failing=[7], attempts=2)
    before = rows(run)
    done = regrade(run, strict, pool=pool)
    wrong = {n for n in range(CASES) if n % 3 and not f"prompt {n}".startswith("prompt 1")} - {7}
    assert done.flips
    flipped = {(flip.case_id, flip.attempt, flip.old.outcome, flip.new.outcome) for flip in done.flips.flips}
    assert flipped == {(f"c{n}", attempt, "passed", "failed") for n in wrong for attempt in (1, 2)}
    assert (done.flips.compared, done.flips.ungraded, done.flips.rescored) == (2 * CASES, 0, 0)
    assert sum(one.count for one in done.flips.counts) == done.flips.flipped == 2 * len(wrong)
    listed = [json.loads(line) for line in (Path(done.uri) / "report" / "flips.jsonl").read_text().splitlines()]
    assert listed == [flip.model_dump() for flip in done.flips.flips]
    after = rows(Path(done.uri))
    kept = [name for name in before[0] if name not in {*GRADED, *NEW}]
    assert [{name: row[name] for name in kept} for row in after] == [
        {name: row[name] for name in kept} for row in before
    ]
    assert {row["reused"] for row in after} == {True}
    assert (done.report.error, done.report.complete) == (2, True)
    assert done.report.models[0].cost_usd == pytest.approx(2 * (CASES - 1) * 13e-6)
    assert {receipt.spent.tokens for receipt in RunFolder(done.uri).commits().values()} == {0}


def test_an_unchanged_grader_changes_nothing(tmp_path: Path, lenient: StoredRelease):
    """The run's own release is the default; every verdict is what it was, and the command given again does nothing."""
    run = answered(lenient, tmp_path)
    done = regrade(run)
    assert done.flips
    assert (done.flips.compared, done.flips.flipped) == (CASES, 0)
    stored = {path: path.read_bytes() for path in (Path(done.uri) / "parts").rglob("*.parquet")}
    assert regrade(run) == done
    assert {path: path.read_bytes() for path in (Path(done.uri) / "parts").rglob("*.parquet")} == stored


def test_no_key_is_needed(tmp_path: Path, lenient: StoredRelease, monkeypatch: pytest.MonkeyPatch):
    """Nobody is asked, so the model may be gone, its key, too, and its price may be unknown."""
    monkeypatch.setenv("TEST_KEY", "sk-0123456789")
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, api_key_env="TEST_KEY")
        drive(question(lenient, [agent]), lenient, tmp_path)
    monkeypatch.delenv("TEST_KEY")
    assert regrade(tmp_path / "test").report.complete


def test_only_what_is_asked_alike_is_graded(tmp_path: Path, lenient: StoredRelease):
    """Cases that ask something else now, that are gone or new are left out by name; of a sample, all that it holds."""
    run = answered(lenient, tmp_path, selection=Selection(sample=40))
    other = make_release(tmp_path / "other", CASES - 10, prompt=lambda n: "another" if n < 10 else f"prompt {n}")
    job = prepare_regrade(str(run), other)
    planned = {row["case_id"] for row in rows(run)}
    changed, removed = ({f"c{n}" for n in some} & planned for some in (range(10), range(CASES - 10, CASES)))
    assert set(job.left_out.changed.cases) == changed
    assert set(job.left_out.removed.cases) == removed
    assert job.left_out.added.count == 0
    done = job(how())
    assert {row["case_id"] for row in rows(Path(done.uri))} == planned - changed - removed
    assert done.report.complete
    larger = prepare_regrade(str(run), make_release(tmp_path / "larger", CASES + 5), name="larger")
    assert larger.left_out.added.cases == tuple(sorted(f"c{n}" for n in range(CASES, CASES + 5)))
    assert larger(how()).report.planned == 40


def test_no_case_in_common(tmp_path: Path, lenient: StoredRelease):
    """A release that asks something else throughout is refused before anything is written."""
    run = answered(lenient, tmp_path)
    other = make_release(tmp_path / "other", CASES, prompt=lambda n: f"another {n}")
    with pytest.raises(UsageError, match=r"no case of run 'test' is asked alike .* 60 are asked otherwise, 0 are gone"):
        prepare_regrade(str(run), other)
    assert not (run / "regrades").exists()


def test_a_regrade_that_was_killed_goes_on(tmp_path: Path):
    """After SIGKILL the same command grades what is not stored yet, and each answer counts once."""
    release = make_release(
        tmp_path, CASES, check=lambda _: {"kind": "custom", "evaluatorKey": "e#default"}, evaluator=SLOW
    )
    plain = make_release(tmp_path / "plain", CASES)
    run = answered(plain, tmp_path, shard_size=8)
    command = [sys.executable, "-m", "trunchray.cli.main", "regrade", str(run), "--release", release.uri, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        while not list(run.glob("regrades/*/parts/*/*.parquet")):
            assert driver.poll() is None, driver.communicate()[1].decode()
            time.sleep(0.01)
        os.kill(driver.pid, signal.SIGKILL)
    (part,) = run.glob("regrades/*")
    first = {path.name for path in part.glob("parts/*/*.parquet")}
    job = prepare_regrade(str(run), release)
    done = job(how())
    assert done.report.complete
    assert done.report.passed == CASES // 2
    assert len(rows(part)) == len({row["trial_key"] for row in rows(part)}) == CASES
    assert first < {path.name for path in part.glob("parts/*/*.parquet")}


def test_a_stopped_regrade_goes_on(tmp_path: Path, lenient: StoredRelease):
    """What is graded by then counts; the flips are told once all is graded."""
    run = answered(lenient, tmp_path)
    stop = Event()
    stop.set()
    part = prepare_regrade(str(run), None)(how(stop=stop))
    assert (part.flips, part.report.not_run) == (None, CASES)
    assert regrade(run).report.complete


def test_what_the_source_lacks(tmp_path: Path, lenient: StoredRelease):
    """Trials without a row that counts are not run, with that reason, and graded once they have one; damaged parts are
    named."""
    drive(question(lenient, [ECHO]), lenient, tmp_path)
    run = tmp_path / "test"
    missing, damaged, *_ = sorted((run / "parts").iterdir())
    planned = {shard.name: len(list(shard_rows(shard))) for shard in (missing, damaged)}
    for folder in ("parts", "commits"):
        shutil.rmtree(run / folder / missing.name)
    edit(next(damaged.iterdir()), lambda content: content[:-1])
    job = prepare_regrade(str(run), None)
    assert job.lacking
    there = CASES - planned[missing.name]
    assert f"run 'test' is not complete: {there} of {CASES} trials have rows that count" in job.lacking
    onlooker = Onlooker()
    done = job(how(observer=onlooker))
    assert (done.report.not_run, done.report.models[0].not_run_reason) == (sum(planned.values()), "no stored answer")
    assert done.report == report_again(done.uri, pytest.fail)
    (warning,) = onlooker.warnings
    assert f"parts/{damaged.name}/" in warning
    assert "missing or damaged, the answers there are not graded" in warning
    drive(question(lenient, [ECHO]), lenient, tmp_path)
    again = prepare_regrade(str(run), None)
    assert again.lacking is None
    assert again(how()).report.complete


def test_models_that_are_graded_later(tmp_path: Path, lenient: StoredRelease, strict: StoredRelease):
    """A regrade of one model is extended by one of all; a model may not be asked into it."""
    agents = [ModelAgent(name=name, model="mock/echo", params={"seed": n}) for n, name in enumerate("ab")]
    drive(question(lenient, agents), lenient, tmp_path)
    run = tmp_path / "test"
    with pytest.raises(UsageError, match="has no model 'c'"):
        regrade(run, strict, models=["c"])
    assert [model.name for model in regrade(run, strict, models=["b"]).report.models] == ["b"]
    both = regrade(run, strict)
    assert [(model.name, model.not_run) for model in both.report.models] == [("b", 0), ("a", 0)]
    assert both.report.models[0].passed == both.report.models[1].passed
    name = Path(both.uri).name
    with pytest.raises(UsageError, match=r"answers were those of .* and are now asked for"):
        drive(question(strict, agents, run_id=name), strict, run / "regrades")
    with pytest.raises(UsageError, match=r"its release was .*\nchoose another --name"):
        regrade(run, lenient, name=name)
    with pytest.raises(UsageError, match="--name 'No Name'"):
        regrade(run, strict, name="No Name")


def test_a_regrade_can_be_regraded(tmp_path: Path, lenient: StoredRelease, strict: StoredRelease):
    """It has the answers, as the run has; what it flips, the grader of before flips back."""
    run = answered(lenient, tmp_path)
    there = regrade(run, strict)
    shutil.rmtree(run / "parts")
    back = regrade(there.uri, lenient)
    assert there.flips
    assert back.flips
    assert 0 < back.flips.flipped == there.flips.flipped
    assert {(one.old, one.new) for one in back.flips.counts} == {("failed", "passed")}
    assert back.report.passed == CASES


def test_a_release_that_is_gone(tmp_path: Path, lenient: StoredRelease, strict: StoredRelease):
    """What was asked is only known from the release of the run."""
    run = answered(lenient, tmp_path)
    shutil.move(lenient.uri, tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="the release of run 'test' cannot be read"):
        prepare_regrade(str(run), strict)


def spoil(run: Path, numbers: Collection[int], *, retryable: bool = False, agent: str = "m") -> None:
    """Let grading have failed on these cases: rows that say so replace theirs, as if written by an earlier command."""
    folder = RunFolder(str(run))
    for receipt in folder.commits().values():
        contents, _ = folder.read_parts(receipt)
        table = [row for _, content in contents for row in parts.decode(content).to_pylist()]
        bad = [row for row in table if row["agent"] == agent and int(row["case_id"][1:]) in numbers]
        if not bad:
            continue
        failure = {"boundary": "sandbox", "type": "start_failed", "message": "it died", "retryable": retryable}
        for row in bad:
            row |= {
                "outcome": "error",
                "failure": failure,
                "passed": None,
                "score": None,
                "message": None,
                "reused": True,
            }
        marks = Marks()
        part = folder.add_part(receipt.shard, parts.encode(bad), len(bad))
        for _, content in [*contents, ("", folder.store.read(part.path))]:
            for key, mark in parts.marks(parts.decode(content)):
                marks.put(key, mark)
        counts = Counts.of(marks.newest.values())
        changes = {"parts": (*receipt.parts, part), "counts": counts, "replaced": marks.replaced}
        folder.commit(receipt.model_copy(update=changes))
    report_again(str(run), pytest.fail)


def test_errors_of_grading_fold_back(pool: str, tmp_path: Path, lenient: StoredRelease):
    """They are graded within the run, retryable or not, without asking; all else stays as it is, and nothing is paid
    for twice."""
    run = answered(lenient, tmp_path, failing=[5])
    before, spent = rows(run), total(receipt.spent for receipt in RunFolder(str(run)).commits().values())
    files = {path: path.read_bytes() for path in (run / "parts").rglob("*.parquet")}
    spoil(run, [3, 20], retryable=False)
    spoil(run, [40], retryable=True)
    done = regrade_errors(str(run), [], how(pool))
    assert done
    assert done.flips
    flips = {(flip.case_id, flip.old.outcome, flip.old.message, flip.new.outcome) for flip in done.flips.flips}
    assert flips == {(f"c{n}", "error", "sandbox/start_failed: it died", "passed") for n in (3, 20, 40)}
    after = rows(run)
    mended = [row for row in after if row["case_id"] in {"c3", "c20", "c40"}]
    assert {(row["earlier_errors"], row["reused"], row["outcome"]) for row in mended} == {(1, True, "passed")}
    assert [row for row in after if row not in mended] == [
        row for row in before if row["case_id"] not in {"c3", "c20", "c40"}
    ]
    assert files.items() <= {path: path.read_bytes() for path in (run / "parts").rglob("*.parquet")}.items()
    assert total(receipt.spent for receipt in RunFolder(str(run)).commits().values()) == spent
    assert (done.report.error, done.report.models[0].retried) == (1, 3)
    assert regrade_errors(str(run), [], how()) is None


@pytest.mark.parametrize("aim", ["run", "retry"])
def test_an_answer_is_never_paid_for_twice(aim: str, pool: str, tmp_path: Path, lenient: StoredRelease):
    """Whoever redoes a trial that only grading failed on grades the answer that is stored."""
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url)
        drive(question(lenient, [agent]), lenient, tmp_path)
        spoil(tmp_path / "test", range(0, CASES, 2), retryable=True)
        if aim == "run":
            report = drive(question(lenient, [agent]), lenient, tmp_path, pool=pool)
        else:
            report = prepare_retry(str(tmp_path / "test"))(how(pool))
        assert provider.asked.total() == CASES
    assert (report.passed, report.models[0].retried) == (CASES, CASES // 2)


def test_retrying_changes_nothing_else(pool: str, tmp_path: Path, lenient: StoredRelease):
    """Errors that asking again could mend are asked again; other errors and what is missing are left alone."""
    with CountingProvider() as provider:
        provider.failing = {"prompt 3": 503, "prompt 20": 401, "prompt 30": 400}
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_retries=0))
        drive(question(lenient, [agent]), lenient, tmp_path)
        run, asked = tmp_path / "test", provider.asked.total()
        before = {row["case_id"]: row for row in rows(run)}
        cases = {shard.name: {row["case_id"] for row in shard_rows(shard)} for shard in (run / "parts").iterdir()}
        gone = next(shard for shard, ids in cases.items() if ids.isdisjoint({"c3", "c20", "c30"}))
        for folder in ("parts", "commits"):
            shutil.rmtree(run / folder / gone)
        report_again(str(run), pytest.fail)
        files = snapshot(run)
        provider.failing = {"prompt 20": 401}
        job = prepare_retry(str(run))
        assert (job.count, job.left()) == (2, 2)
        report = job(how(pool))
        assert job.left() == 1
        assert provider.asked.total() == asked + 2
        assert (report.error, report.not_run, report.models[0].retried) == (2, len(cases[gone]), 2)
        after = {row["case_id"]: row for row in rows(run)}
        assert {case for case in after if after[case] != before[case]} == {"c3", "c20"}
        assert {case: after[case]["earlier_errors"] for case in ("c3", "c20", "c30")} == {"c3": 1, "c20": 1, "c30": 0}
        now = snapshot(run)
        assert {path for path in files if now[path] != files[path]} == set()
        assert {path.split("/")[0] for path in now.keys() - files.keys()} <= {"parts", "commits", "claims"}
        assert "rows from retries: 2" in (run / "report" / "report.md").read_text()
        assert prepare_retry(str(run))(how(pool)).models[0].retried == 2
        assert {row["earlier_errors"] for row in rows(run) if row["case_id"] == "c20"} == {2}


def test_what_a_lost_worker_left_replaces_nothing(tmp_path: Path, lenient: StoredRelease):
    """Rows of a part that came before the last committed one, and that it did not list, never come to count."""
    with CountingProvider() as provider:
        provider.failing = {"prompt 3": 503}
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_retries=0))
        drive(question(lenient, [agent]), lenient, tmp_path)
        run = tmp_path / "test"
        stored = {path: parts.decode(path.read_bytes()).to_pylist() for path in run.glob("parts/*/*.parquet")}
        committed, found = next((path, rows) for path, rows in stored.items() if any(row["failure"] for row in rows))
        error = next(row for row in found if row["failure"])
        named = ("trial_key", "case_id", "eval_id")
        left = [error | {name: row[name] for name in named} for row in found if row["outcome"] == "passed"]
        committed.with_name(f"{1:020d}-{'0' * 32}.parquet").write_bytes(parts.encode(left))
        provider.failing, asked = {}, provider.asked.total()
        report = prepare_retry(str(run))(how("local"))
        assert provider.asked.total() == asked + 1
    assert (report.passed, report.error) == (CASES, 0)


def shard_rows(shard: Path) -> list[dict[str, Any]]:
    return [row for part in shard.iterdir() for row in parts.decode(part.read_bytes()).to_pylist()]


def snapshot(run: Path) -> dict[str, bytes]:
    """All files but the report, the lease and the driver's progress."""
    changing = {"report", "lease.json", "progress.json"}
    paths = [path for path in run.rglob("*") if path.is_file() and path.relative_to(run).parts[0] not in changing]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


def test_a_run_that_is_driven(tmp_path: Path, lenient: StoredRelease, strict: StoredRelease):
    """Nothing is folded into a run that somebody drives; its answers so far can be regraded all the same."""
    started, stop, lock = Event(), Event(), threading.Lock()
    with CountingProvider(latency=0.05) as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_in_flight=2))

        class First(Onlooker):
            def progress(self, snapshot: object) -> None:
                with lock:
                    if list((tmp_path / "test" / "commits").rglob("*.json")):
                        started.set()

        first = threading.Thread(
            target=lambda: drive(question(lenient, [agent]), lenient, tmp_path, observer=First(), stop=stop)
        )
        first.start()
        assert started.wait(60)
        job = prepare_regrade(str(tmp_path / "test"), strict)
        assert job.lacking
        assert "run 'test' is still going" in job.lacking
        part = job(how()).report
        assert 0 < part.not_run < CASES
        first.join()
    assert regrade(tmp_path / "test", strict).report.complete
    spoil(tmp_path / "test", [1])
    lease = HeldLease.take(RunFolder(str(tmp_path / "test")).store)
    with pytest.raises(UsageError, match="another process drives this run"):
        regrade_errors(str(tmp_path / "test"), [], how())
    lease.release()
    assert regrade_errors(str(tmp_path / "test"), [], how())

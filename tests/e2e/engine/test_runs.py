"""What a run promises, on every pool.

Where a run only has to be there first, or only to go on, it does so in this process: each run on Ray starts processes.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import Onlooker, drive, question, rows, unmeasured
from trunchray.core.agent import Faults, Latency, Mock, ModelAgent, Pacing, Price
from trunchray.core.digest import sha256
from trunchray.core.plan import make_plan
from trunchray.engine.seating import Seating
from trunchray.errors import StoreError, UsageError

A = ModelAgent(name="a", model="mock/echo", mock=Mock())
B = ModelAgent(
    name="b", model="mock/echo", mock=Mock(seed=1, faults=Faults(server_error=0.2)), price=Price(input=1, output=2)
)
ENDS_IN = b"export default { evaluate: ({ output, caseData }) => output.endsWith(String(caseData.number)) }"


def check(number: int) -> dict[str, object]:
    return (
        {"kind": "custom", "evaluatorKey": "e#default"} if number % 5 == 0 else {"kind": "contains", "expected": "pt 1"}
    )


def test_every_trial_is_counted_once(pool: str, tmp_path: Path):
    """A run ends with exactly the planned trial keys, each with one row, and the report adds up to them."""
    release = make_release(tmp_path, 90, check=check, evaluator=ENDS_IN)
    spec = question(release, [A, B], attempts=2)
    report = drive(spec, release, tmp_path, pool=pool, seating=Seating(workers=2))
    plan = make_plan(spec, release.cases().index)
    found = rows(tmp_path / "test")
    assert sorted(row["trial_key"] for row in found) == sorted(k for shard in plan.shards for k in shard.trial_keys())
    assert report.complete
    assert [(m.name, m.planned, m.error, m.not_run) for m in report.models] == [("a", 180, 0, 0), ("b", 180, 0, 0)]
    passed = 2 * sum(n % 5 == 0 or "pt 1" in f"prompt {n}" for n in range(90))
    assert {m.passed for m in report.models} == {passed}
    assert sum(row["outcome"] == "passed" for row in found) == 2 * passed


def test_the_report_does_not_depend_on_the_pool(ray_here: None, tmp_path: Path):
    """In this process or on Ray, the counted rows are the same but for measured times and who did the work."""
    release = make_release(tmp_path, 60, check=check, evaluator=ENDS_IN)
    for pool in ("local", "ray"):
        drive(question(release, [A, B]), release, tmp_path / pool, pool=pool, seating=Seating(workers=2))
    assert unmeasured(tmp_path / "local" / "test") == unmeasured(tmp_path / "ray" / "test")


def test_a_repeated_command_does_nothing(pool: str, tmp_path: Path):
    """A complete run is reported again, byte for byte, without asking a model anything."""
    release = make_release(tmp_path, 20)
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url)
        drive(question(release, [agent]), release, tmp_path, pool=pool)
        assert provider.asked.total() == 20
        before = {path: path.read_bytes() for path in (tmp_path / "test" / "report").iterdir()}
        drive(question(release, [agent]), release, tmp_path, pool=pool)
        assert provider.asked.total() == 20
    assert {path: path.read_bytes() for path in (tmp_path / "test" / "report").iterdir()} == before
    assert {path.name for path in before} == {
        *("results.parquet", "results.basis.json"),
        *("summary.json", "report.md", "report.html"),
    }


def test_added_models_and_attempts_run_alone(pool: str, tmp_path: Path):
    """Extending a run asks only what was not asked before, and what was counted stays as it is."""
    release = make_release(tmp_path, 30)
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url)
        drive(question(release, [agent]), release, tmp_path)
        first = {row["trial_key"]: row for row in rows(tmp_path / "test")}
        report = drive(question(release, [A]), release, tmp_path, pool=pool)
        assert [(m.name, m.passed) for m in report.models] == [("m", 30), ("a", 30)]
        assert provider.asked.total() == 30
        drive(question(release, [agent], attempts=2), release, tmp_path)
        assert provider.asked.total() == 60
    after = {row["trial_key"]: row for row in rows(tmp_path / "test")}
    assert first.items() <= after.items()
    assert len(after) == 30 + 30 + 30


def test_a_stopped_run_goes_on_where_it_stopped(pool: str, tmp_path: Path):
    """Stopping counts what was answered; the same command pays only for the rest and ends with the whole report."""
    release = make_release(tmp_path, 120)
    stop = threading.Event()
    with CountingProvider(latency=0.05) as provider:
        provider.reach = 40
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_in_flight=8))
        threading.Thread(target=lambda: provider.reached.wait(60) and stop.set(), daemon=True).start()
        part = drive(question(release, [agent]), release, tmp_path, pool=pool, stop=stop)
        assert 0 < part.not_run < 120
        assert {model.not_run_reason for model in part.models} == {"cancelled"}
        answered = provider.answered.total()
        assert answered == 120 - part.not_run
        whole = drive(question(release, [agent]), release, tmp_path)
        assert whole.complete
        assert whole.passed == 120
        assert provider.answered.total() == 120, "an answer was paid for twice"


def test_permits_bound_what_is_in_flight(pool: str, tmp_path: Path):
    """However many workers there are, a model never sees more requests at once than it may, and nearly that many."""
    release = make_release(tmp_path, 100)
    with CountingProvider(latency=0.02) as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_in_flight=10))
        drive(question(release, [agent]), release, tmp_path, pool=pool, seating=Seating(workers=2))
        assert 5 <= provider.most_at_once <= 10


def test_what_a_provider_refuses_is_an_error_not_a_wrong_answer(pool: str, tmp_path: Path):
    """Cases whose requests fail are error rows that say why; the others are graded."""
    release = make_release(tmp_path, 20)
    with CountingProvider() as provider:
        provider.failing = {"prompt 3": 400, "prompt 4": 401}
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url)
        report = drive(question(release, [agent]), release, tmp_path, pool=pool)
    assert (report.passed, report.failed, report.error, report.not_run) == (18, 0, 2, 0)
    failures = {row["case_id"]: row["failure"] for row in rows(tmp_path / "test") if row["outcome"] == "error"}
    assert {case: (f["boundary"], f["type"]) for case, f in failures.items()} == {
        "c3": ("provider", "bad_request"),
        "c4": ("provider", "authentication"),
    }
    assert all(row["passed"] is None for row in rows(tmp_path / "test") if row["outcome"] == "error")


def test_errors_that_somebody_mended_are_asked_again(pool: str, tmp_path: Path):
    """The same command asks again what failed for a reason that may be gone, and nothing else; new rows replace old."""
    release = make_release(tmp_path, 40)
    with CountingProvider() as provider:
        provider.failing = {"prompt 3": 503, "prompt 20": 401, "prompt 30": 400}
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_retries=0))
        assert drive(question(release, [agent]), release, tmp_path).error == 3
        assert provider.asked.total() == 40
        provider.failing = {}
        onlooker = Onlooker()
        report = drive(question(release, [agent]), release, tmp_path, pool=pool, observer=onlooker)
        assert provider.asked.total() == 42
    assert (report.passed, report.error, report.not_run) == (39, 1, 0)
    assert onlooker.notes[0] == "40 of 40 trials are counted already; 2 that ended in an error are asked again"
    (bad,) = [row for row in rows(tmp_path / "test") if row["outcome"] == "error"]
    assert (bad["case_id"], bad["failure"]["retryable"]) == ("c30", False)


def test_a_case_without_a_recorded_output_is_named(pool: str, tmp_path: Path):
    """A replay file that lacks a row costs that trial a verdict, and the error says which case to add."""
    release = make_release(tmp_path, 3)
    replay = b'{"case_id": "c0", "output": "x"}\n{"case_id": "c2", "output": "y"}\n'
    agent = ModelAgent(name="r", model="mock/replay", mock=Mock(replay=sha256(replay)))
    report = drive(question(release, [agent]), release, tmp_path, pool=pool, inputs={sha256(replay): replay})
    assert (report.passed, report.error) == (2, 1)
    (bad,) = [row for row in rows(tmp_path / "test") if row["outcome"] == "error"]
    assert bad["failure"]["type"] == "no_recorded_output"
    assert "'c1'" in bad["failure"]["message"]


HOSTILE = b"""
export default {
  evaluate({ caseData, output }) {
    switch (caseData.number) {
      case 1: for (;;) {}
      case 2: throw new TypeError("no such field");
      case 3: { const hog = []; for (;;) hog.push(new Array(1e6).fill(1.5)) }
      case 4: return process.exit(0);
      case 5:
        Array.prototype.map = () => { throw 1 };
        Object.prototype.passed = false;
        globalThis.seen = 1;
        return true;
      case 6: console.log("x".repeat(100)); return true;
      case 7: return { passed: true, details: "x".repeat(100_000_000) };
      default: return typeof seen === "undefined" && [1].map((x) => x)[0] === 1 && output.length > 0;
    }
  },
}
"""


def test_a_hostile_evaluator_hurts_only_its_own_cases(pool: str, tmp_path: Path):
    """Loops, throws, memory bombs, exits and giant results are evaluator errors with their generation kept; polluting
    prototypes and printing are not; every other case's verdict is right."""
    release = make_release(
        tmp_path, 24, check=lambda _: {"kind": "custom", "evaluatorKey": "e#default"}, evaluator=HOSTILE
    )
    report = drive(question(release, [A]), release, tmp_path, pool=pool)
    found = {row["case_id"]: row for row in rows(tmp_path / "test")}
    errors = {case: row["failure"]["type"] for case, row in found.items() if row["outcome"] == "error"}
    assert errors.keys() == {"c1", "c2", "c3", "c4", "c7"}
    assert (errors["c1"], errors["c2"], errors["c7"]) == ("timeout", "threw", "output_too_large")
    assert {row["failure"]["boundary"] for row in found.values() if row["failure"]} == {"evaluator"}
    assert all(found[case]["output"] for case in errors)
    assert (report.passed, report.failed) == (19, 0)


def test_a_damaged_part_is_named_and_its_trials_run_again(pool: str, tmp_path: Path):
    """A flipped byte in a stored part never reaches a report: the part is named and its trials are owed again."""
    release = make_release(tmp_path, 40)
    agent = ModelAgent(name="a", model="mock/echo", mock=Mock())
    whole = drive(question(release, [agent]), release, tmp_path)
    before = unmeasured(tmp_path / "test")
    for place, part in enumerate(sorted((tmp_path / "test" / "parts").rglob("*.parquet"))[:2]):
        content = bytearray(part.read_bytes())
        content[len(content) // 2 if place else -20] ^= 0x10
        part.write_bytes(content)
    onlooker = Onlooker()
    again = drive(question(release, [agent]), release, tmp_path, pool=pool, observer=onlooker)
    assert any(".parquet" in warning for warning in onlooker.warnings)
    assert again.complete
    assert again.passed == whole.passed
    assert unmeasured(tmp_path / "test") == before
    assert drive(question(release, [agent]), release, tmp_path) == again


def test_a_lost_part_is_run_again(pool: str, tmp_path: Path):
    """A committed part that is gone from the store is owed again, and nothing else is."""
    release = make_release(tmp_path, 40)
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url)
        drive(question(release, [agent]), release, tmp_path)
        next((tmp_path / "test" / "parts").rglob("*.parquet")).unlink()
        assert drive(question(release, [agent]), release, tmp_path, pool=pool).complete
        assert 40 < provider.asked.total() <= 56


def test_keys_stay_in_the_environment(pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A credential reaches the provider's header and nothing that is stored."""
    monkeypatch.setenv("TEST_PROVIDER_KEY", "sk-very-secret-0123456789")
    name = "TEST_PROVIDER_KEY" if pool == "local" else "PATH"  # Ray started earlier, with the environment of then
    secret = os.environ[name].encode()
    release = make_release(tmp_path, 4)
    with CountingProvider() as provider:
        provider.failing = {"prompt 1": 401}
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, api_key_env=name)
        drive(question(release, [agent]), release, tmp_path, pool=pool)
        assert {headers["Authorization"].encode() for headers in provider.headers} == {b"Bearer " + secret}
    stored = b"".join(path.read_bytes() for path in (tmp_path / "test").rglob("*") if path.is_file())
    assert secret not in stored


def test_a_commit_of_another_plan_does_not_count(tmp_path: Path):
    """A folder whose run.json was lost and written anew with other shards is completed, not stuck."""
    release = make_release(tmp_path, 60)
    drive(question(release, [A], shard_size=30), release, tmp_path)
    (tmp_path / "test" / "run.json").unlink()
    report = drive(question(release, [A], shard_size=16), release, tmp_path)
    assert report.complete
    assert len(rows(tmp_path / "test")) == 60


def test_a_store_that_refuses_ends_the_run(tmp_path: Path):
    """When rows cannot be stored, the run stops asking for more of them instead of paying again and again."""
    release = make_release(tmp_path, 64)
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url)
        (tmp_path / "test").mkdir()
        (tmp_path / "test" / "parts").write_bytes(b"in the way")
        with pytest.raises(StoreError, match="parts/"):
            drive(question(release, [agent]), release, tmp_path)
        assert provider.asked.total() <= 64
        (tmp_path / "test" / "parts").unlink()
        assert drive(question(release, [agent]), release, tmp_path).complete


def test_two_drivers_do_not_share_a_run(tmp_path: Path):
    """While one process drives a run, another is refused; with takeover it drives, and the first one stops."""
    release = make_release(tmp_path, 60)
    agent = ModelAgent(
        name="a", model="mock/echo", mock=Mock(latency=Latency(p50=0.2, p99=0.2)), pacing=Pacing(max_in_flight=4)
    )
    started, stop = threading.Event(), threading.Event()

    class First(Onlooker):
        def progress(self, snapshot: object) -> None:
            started.set()

    first = threading.Thread(
        target=lambda: drive(question(release, [agent]), release, tmp_path, observer=First(), stop=stop)
    )
    first.start()
    assert started.wait(30)
    with pytest.raises(UsageError, match="another process drives this run"):
        drive(question(release, [agent]), release, tmp_path)
    stop.set()
    first.join()
    assert drive(question(release, [agent]), release, tmp_path, takeover=True).complete


def test_a_run_lives_anywhere():
    """Releases and runs are plain objects: a run in memory ends like one on disk."""
    release = make_release("memory://anywhere/releases", 12)
    assert drive(question(release, [A]), release, "memory://anywhere/runs").passed == 12
    assert drive(question(release, [A]), release, "memory://anywhere/runs").complete


def test_a_mended_trial_is_never_asked_a_third_time(tmp_path: Path):
    """Rows replace each other in the order in which they came, however often a shard is run again."""
    release = make_release(tmp_path, 10)
    with CountingProvider() as provider:
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_retries=0))
        for mended in range(4):
            provider.failing = {f"prompt {n}": 503 for n in range(mended, 3)}
            report = drive(question(release, [agent]), release, tmp_path)
            assert report.error == 3 - mended
    assert {provider.answered[f"prompt {n}"] for n in range(10)} == {1}


def test_numbers_that_only_javascript_can_hold(tmp_path: Path):
    """An accepted value beyond 2^53 is graded like any other."""
    plan = {"calls": [{"toolName": "f", "arguments": {"x": {"acceptedValues": [10**20]}}}]}
    release = make_release(
        tmp_path, 2, check=lambda _: {"kind": "tool_call_syntax", "version": 1, "alternatives": [plan]}
    )
    report = drive(question(release, [A]), release, tmp_path)
    assert (report.failed, report.error) == (2, 0)

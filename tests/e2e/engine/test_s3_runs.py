"""Whole runs with release and results on a real S3 server, on every pool, through good weather and bad."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.commands import CommandLine
from support.provider import CountingProvider
from support.releases import make_release
from support.runs import Onlooker, drive, question, unmeasured
from support.s3 import READERS_KEY, READERS_SECRET, Bucket
from support.s3_faults import Asked, Fault, Kind
from trunchray.adapters import parts
from trunchray.adapters.lease import HeldLease
from trunchray.adapters.parts import MEASURED
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.store import Store
from trunchray.core.agent import Faults, Mock, ModelAgent, Pacing
from trunchray.core.digest import sha256
from trunchray.core.lease import STALE
from trunchray.errors import Interrupted, StoreError, UsageError

MIXED = ModelAgent(name="m", model="mock/echo", mock=Mock(seed=1, faults=Faults(server_error=0.2)))
ECHO = ModelAgent(name="m", model="mock/echo", mock=Mock())


def check(number: int) -> dict[str, object]:
    return {"kind": "contains", "expected": str(number % 7)}


def rows(s3: Bucket, run: str = "test") -> list[dict[str, Any]]:
    """The counted rows of a run, without what differs each time."""
    found = pq.read_table(io.BytesIO(s3.read(f"{run}/report/results.parquet"))).to_pylist()
    assert len({row["trial_key"] for row in found}) == len(found)
    return [{name: value for name, value in row.items() if name not in MEASURED} for row in found]


def asking(provider: CountingProvider) -> ModelAgent:
    pacing = Pacing(max_in_flight=16, max_retries=0)
    return ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=pacing)


def test_a_run_on_s3_is_like_one_on_a_disk(pool: str, s3: Bucket, tmp_path: Path):
    """Release and run on S3 give the same rows as on a disk, and a second command has nothing to do."""
    on_disk = make_release(tmp_path, 60, check=check)
    drive(question(on_disk, [MIXED]), on_disk, tmp_path)
    on_s3 = make_release(s3.uri, 60, check=check)
    report = drive(question(on_s3, [MIXED]), on_s3, s3.uri, pool=pool)
    assert report.complete
    assert rows(s3) == unmeasured(tmp_path / "test")
    assert Store(f"{s3.uri}/test").names() == [
        "claims",
        "commits",
        "lease.json",
        "parts",
        "progress.json",
        "report",
        "run.json",
    ]
    summary = s3.read("test/report/summary.json")
    drive(question(on_s3, [MIXED]), on_s3, s3.uri, pool=pool)
    assert s3.read("test/report/summary.json") == summary


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_in_bad_weather(seed: int, s3: Bucket, tmp_path: Path):
    """With a tenth of all requests failing, being cut or answered too late, nothing is lost, torn or paid for twice."""
    release = make_release(s3.uri, 120, check=check)
    with CountingProvider() as provider:
        with s3.proxy.shaky(seed):
            report = drive(question(release, [asking(provider)]), release, s3.uri)
        assert report.complete
        assert provider.answered.total() == 120
    on_disk = make_release(tmp_path, 120, check=check)
    with CountingProvider() as provider:
        drive(question(on_disk, [asking(provider)]), on_disk, tmp_path)
    assert [row["output"] for row in rows(s3)] == [row["output"] for row in unmeasured(tmp_path / "test")]


def test_credentials_that_expire_in_the_middle(pool: str, s3: Bucket):
    """One clear line; what was stored is there, and with new credentials the same command ends the run."""
    release = make_release(s3.uri, 96, check=check)
    with CountingProvider() as provider:
        spec = question(release, [asking(provider)])
        expired = Fault("expired token", "PUT", "test/parts/", spare=2, times=10_000)
        with (
            s3.proxy.faulty(expired),
            pytest.raises(StoreError, match="the credentials have expired; get new ones") as e,
        ):
            drive(spec, release, s3.uri, pool=pool)
        assert e.value.exit_code == 3
        assert "\n" not in str(e.value)
        store = Store(f"{s3.uri}/test")
        stored = sum(len(parts.marks(parts.decode(store.read(path)))) for path in store.find("parts"))
        assert stored
        before = provider.answered.total()
        assert drive(spec, release, s3.uri, takeover=True).complete
        assert len(rows(s3)) == 96
        assert provider.answered.total() - before <= 96 - stored


@pytest.mark.parametrize("fault", [Fault("stale list", "LIST", times=99), Fault("short download", "GET", "commits/")])
def test_a_store_that_answers_from_the_past(fault: Fault, s3: Bucket):
    """Listings that miss what was written, and half an answer, do not make a run lose or repeat what is counted."""
    release = make_release(s3.uri, 64, check=check)
    drive(question(release, [ECHO]), release, s3.uri)
    before = rows(s3)
    with s3.proxy.faulty(fault):
        assert drive(question(release, [ECHO]), release, s3.uri).complete
    assert rows(s3) == before
    assert {
        name
        for shard in Store(f"{s3.uri}/test/commits").names()
        for name in Store(f"{s3.uri}/test/commits").names(shard)
    } == {"1.json"}


def test_inputs_and_cache_on_s3(pool: str, s3: Bucket):
    """Recorded outputs and cached answers are read from S3 by whoever runs the trials."""
    release = make_release(s3.uri, 8)
    recorded = b"".join(b'{"case_id": "c%d", "output": "out %d"}\n' % (number, number) for number in range(8))
    replaying = ModelAgent(name="r", model="mock/replay", mock=Mock(replay=sha256(recorded)))
    inputs, cache = {sha256(recorded): recorded}, f"{s3.uri}/cache"
    with CountingProvider() as provider:
        drive(question(release, [asking(provider)], run_id="first"), release, s3.uri, cache=cache)
        spec = question(release, [asking(provider), replaying])
        assert drive(spec, release, s3.uri, pool=pool, inputs=inputs, cache=cache).complete
        assert provider.answered.total() == 8
    outputs = {kind: [f"{kind} {number}" for number in range(8)] for kind in ("prompt", "out")}
    assert sorted(row["output"] for row in rows(s3)) == [*outputs["out"], *outputs["prompt"]]
    assert len(Store(f"{s3.uri}/cache").find()) == 16


def test_a_torn_part_is_read_again(s3: Bucket):
    """Half a part, delivered as if it were whole, is not taken for a damaged one."""
    release = make_release(s3.uri, 32)
    onlooker = Onlooker()
    with s3.proxy.faulty(Fault("short download", "GET", "parts/")):
        assert drive(question(release, [ECHO]), release, s3.uri, observer=onlooker).complete
    assert onlooker.warnings == []


def test_one_of_two_drivers_drives(s3: Bucket):
    """Of two that start the same run at the same moment one is refused, and the other one ends it."""
    release = make_release(s3.uri, 64)
    ends: list[object] = []
    start = threading.Barrier(2)

    def attempt() -> None:
        start.wait()
        try:
            ends.append(drive(question(release, [ECHO]), release, s3.uri).complete)
        except (UsageError, Interrupted) as e:
            ends.append(e)

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # When the first one is done before the second one looks, both end well.
    assert True in ends
    assert all(end is True or "another process" in str(end) for end in ends)
    assert len(rows(s3)) == 64


def test_a_driver_that_wakes_up_changes_nothing_that_counts(s3: Bucket):
    """A driver that slept while its lease went stale is passed; when it wakes, its commits and its report are void."""
    release = make_release(s3.uri, 64, check=check)
    spec = question(release, [ECHO], shard_size=32)
    asleep, awake = threading.Event(), threading.Event()

    def sleep() -> None:
        asleep.set()
        assert awake.wait(120)

    ends: list[BaseException | None] = []

    def sleeper() -> None:
        try:
            drive(spec, release, s3.uri)
            ends.append(None)
        except BaseException as e:
            ends.append(e)

    thread = threading.Thread(target=sleeper)
    with s3.proxy.faulty(Fault("conflict", "PUT", "commits/", before=sleep)):  # it has checked its lease by then
        thread.start()
        assert asleep.wait(60)
        folder = RunFolder(f"{s3.uri}/test")
        later = datetime.now(UTC) + STALE + timedelta(seconds=1)
        HeldLease.take(folder.store, now=lambda: later, sleep=lambda _: None)
        assert drive(spec, release, s3.uri, takeover=True).complete
        counted, commits = rows(s3), RunFolder(folder.uri).commits()
        report = {name: s3.read(f"test/report/{name}") for name in Store(f"{s3.uri}/test/report").names()}
        awake.set()
        thread.join()
    assert isinstance(ends[0], Interrupted)
    assert "this run is now driven by" in str(ends[0])
    assert RunFolder(folder.uri).commits() == commits
    assert rows(s3) == counted
    assert {name: s3.read(f"test/report/{name}") for name in report} == report


@pytest.mark.parametrize("kind", ["ignored condition", "not implemented"])
def test_a_store_without_conditions(kind: Kind, s3: Bucket):
    """Where objects cannot be created on condition, a run says what that means, and is as right as elsewhere."""
    release = make_release(s3.uri, 32)
    s3.forget()
    onlooker = Onlooker()
    times = 999 if kind == "ignored condition" else 1
    with s3.proxy.faulty(Fault(kind, "PUT", times=times)):
        assert drive(question(release, [ECHO]), release, s3.uri, observer=onlooker).complete
    assert [warning for warning in onlooker.warnings if "does not heed If-None-Match" in warning]
    assert len(rows(s3)) == 32


@dataclass
class Driver:
    """`trunchray run` in a process of its own."""

    s3: Bucket
    config: Path

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trunchray.cli.main", "run", str(self.config), *options, "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def write(self, release: StoredRelease, provider: CountingProvider) -> None:
        model = {"id": "local/m", "base_url": provider.base_url, "pacing": {"max_in_flight": 8, "max_retries": 0}}
        settings = {"release": release.uri, "out": self.s3.uri, "run_id": "test", "shard_size": 16, "models": [model]}
        self.config.write_text(json.dumps(settings), encoding="utf-8")


def test_a_driver_stopped_by_the_system(s3: Bucket, tmp_path: Path):
    """A driver that is suspended, passed by another and resumed ends with 3 and leaves everything as it finds it."""
    release = make_release(s3.uri, 96, check=check)
    driver = Driver(s3, tmp_path / "run.yaml")
    with CountingProvider(latency=0.05) as provider:
        provider.reach = 24
        driver.write(release, provider)
        first = driver.start()
        assert provider.reached.wait(60), first.kill() or first.communicate()
        first.send_signal(signal.SIGSTOP)
        second = driver.start()
        _, said = second.communicate(timeout=60)
        assert second.returncode == 2
        assert "another process drives this run" in said
        third = driver.start("--takeover")
        out, said = third.communicate(timeout=120)
        assert third.returncode == 0, said
        assert json.loads(out)["complete"]
        before = {path: s3.read(path) for path in Store(s3.uri).find("test") if not path.endswith(MAY_CHANGE)}
        first.send_signal(signal.SIGCONT)
        _, said = first.communicate(timeout=120)
    assert first.returncode == 3
    assert "this run is now driven by" in said
    assert "Traceback" not in said
    assert {path: s3.read(path) for path in before} == before
    added = set(Store(s3.uri).find("test")) - set(before)
    assert all(path.startswith("test/parts/") for path in added if not path.endswith(MAY_CHANGE)), added


def test_stopping_while_the_store_is_out(s3: Bucket, tmp_path: Path):
    """SIGTERM ends a run within ten seconds even then, with 3 and one line; what was stored is not asked again."""
    release = make_release(s3.uri, 96, check=check)
    driver = Driver(s3, tmp_path / "run.yaml")
    with CountingProvider(latency=0.05) as provider:
        provider.reach = 48
        driver.write(release, provider)
        first = driver.start()
        assert provider.reached.wait(60), first.kill() or first.communicate()
        s3.proxy.spoil = lambda: Fault("hang after")
        first.send_signal(signal.SIGTERM)
        try:
            _, said = first.communicate(timeout=40)  # ten on a machine that is not busy; patience with stores is sixty
        finally:
            s3.proxy.spoil = lambda: None
            first.kill()
        assert first.returncode == 3, said
        assert "the same command continues" in said
        assert "Traceback" not in said
        stored = sum(receipt.counts.rows for receipt in RunFolder(f"{s3.uri}/test").commits().values())
        before = provider.answered.total()
        out, said = driver.start().communicate(timeout=120)
        assert json.loads(out)["complete"], said
        assert provider.answered.total() - before <= 96 - stored
    assert len(rows(s3)) == 96


MAY_CHANGE = ("lease.json", "progress.json", "claims/1.json")
"""What a driver that wakes up may still write: that it lives, or that it ends."""


def kinds(log: list[Asked]) -> Counter[str]:
    """How often what was asked, by what the first part of the path says."""
    found: Counter[str] = Counter()
    for asked in log:
        _, _, place, *_ = [*asked.key.split("/"), "", ""]
        found[f"{asked.what} {place}"] += 1
    return found


def test_few_requests(s3: Bucket):
    """Three requests a shard, some thirty a run and a few every five seconds: less than 30 for 1,000 trials.

    That is for shards of the usual size that end before a part is due, in runs of 25,000 trials.
    """
    release = make_release(s3.uri, 2000)
    with s3.proxy.counting() as log:
        drive(question(release, [ECHO], shard_size=128), release, s3.uri)
    asked = kinds(log)
    per_shard = [asked.pop(kind) for kind in ("PUT parts", "PUT commits", "GET parts")]
    again_and_again = sum(asked.pop(kind) for kind in ("GET claims", "PUT lease.json", "PUT progress.json"))
    assert per_shard == [16, 16, 16]
    assert sum(asked.values()) + again_and_again <= 60, asked
    assert (3 * 25_000 / 128 + sum(asked.values())) / 25 < 26


@pytest.fixture
def release(s3: Bucket) -> StoredRelease:
    return make_release(s3.uri, 40, check=check)


@pytest.fixture
def trunchray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path, capsys)


def test_the_commands(s3: Bucket, release: StoredRelease, trunchray: CommandLine):
    """`run`, `status`, `report` and `verify` take s3:// wherever they take a path, and leave nothing on the disk."""
    run = f"{s3.uri}/runs/r"
    command = ("run", release.uri, "--model", "mock/echo", "--out", f"{s3.uri}/runs", "--run-id", "r")
    assert trunchray(*command, "--json").json["complete"]
    assert trunchray("status", run, "--json").json["state"] == "complete"
    assert trunchray("report", run, "--json").json["uri"] == run
    assert trunchray("verify", release.uri).code == 0
    assert trunchray("inspect", release.uri).code == 0
    assert trunchray(*command).code == 0
    assert trunchray.listing() == {}
    assert "the runs in it are r" in trunchray("status", f"{s3.uri}/runs").err


def test_compiling_to_s3(s3: Bucket, trunchray: CommandLine):
    """A repository is compiled straight into a bucket, and run from its source with the release beside the runs."""
    trunchray("init", "mine")
    compiled = trunchray("compile", "mine", "--out", s3.uri, "--json").json["release"]
    assert compiled.startswith(s3.uri)
    assert trunchray("verify", compiled).code == 0
    assert trunchray("run", "mine", "--model", "mock/echo", "--out", s3.uri, "--run-id", "r", "--json").json["complete"]
    assert len(Store(f"{s3.uri}/.releases").names()) == 1


@pytest.mark.parametrize(
    "argv",
    [
        "run {release} --model mock/echo --out {place}",
        "compile mine --out {place}",
        "status {place}/r",
        "report {place}/r",
        "verify {place}/r",
        "run {place}/r --model mock/echo",
    ],
)
def test_a_bucket_that_does_not_exist(argv: str, s3: Bucket, release: StoredRelease, trunchray: CommandLine):
    """Every command says so in one line, and exits with 2."""
    (trunchray.folder / "mine").mkdir()
    said = trunchray.refused(
        *(word.format(release=release.uri, place="s3://no-such-bucket/x") for word in argv.split())
    )
    assert "there is no bucket 'no-such-bucket' at http://127.0.0.1:" in said
    assert said.count("\n") == 1


def test_a_lease_that_is_held_elsewhere(s3: Bucket, release: StoredRelease, trunchray: CommandLine):
    """The second driver is refused with the name of the first; `status` shows it."""
    command = ("run", release.uri, "--model", "mock/echo", "--out", s3.uri, "--run-id", "r")
    trunchray(*command)
    held = HeldLease.take(Store(f"{s3.uri}/r"))
    assert f"another process drives this run: {held.lease.driver}" in trunchray.refused(*command)
    assert trunchray(*command, "--takeover").code == 0
    with pytest.raises(Interrupted):
        held.check()


def test_nobody_listens(s3: Bucket, release: StoredRelease, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """A store that is not up is named within seconds, before anything is compiled or asked."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    outcome = trunchray("compile", "mine", "--out", s3.uri)
    assert outcome.code == 2
    assert "nothing answers at http://127.0.0.1:1; is it up, and is AWS_ENDPOINT_URL right?" in outcome.err
    assert outcome.err.count("\n") == 1


def test_no_permission(s3: Bucket, release: StoredRelease, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """Who may read and not write can look, and is told before anything ran."""
    command = ("run", release.uri, "--model", "mock/echo", "--out", s3.uri, "--run-id")
    trunchray(*command, "r")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", READERS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", READERS_SECRET)
    s3.log_in_again()
    assert "it may not be written with the permissions at hand" in trunchray.refused(*command, "other")
    assert trunchray("status", f"{s3.uri}/r").code == 0
    monkeypatch.undo()
    s3.log_in_again()


def test_credentials_that_expire_under_a_command(s3: Bucket, release: StoredRelease, trunchray: CommandLine):
    """Exit 3 and one line in the middle of a run; the same command goes on with what is stored."""
    command = ("run", release.uri, "--model", "mock/echo", "--out", s3.uri, "--run-id", "r")
    with s3.proxy.faulty(Fault("expired token", "PUT", "r/commits", times=99)):
        outcome = trunchray(*command)
    assert outcome.code == 3
    assert "error: " in outcome.err
    assert "the credentials have expired; get new ones and give the same command again" in outcome.err
    assert trunchray(*command, "--takeover", "--json").json["complete"]

"""Deaths at bad moments: of a worker, of the driver, by SIGKILL and by SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import drive, question, rows
from trunchray.adapters.releases import StoredRelease
from trunchray.core.agent import ModelAgent, Pacing

TRIALS, IN_FLIGHT = 300, 16


def actors() -> list[int]:
    """The processes of this user's Ray actors."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::_Actor"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def config(path: Path, release: StoredRelease, provider: CountingProvider, pool: str) -> Path:
    settings = {
        "release": release.uri,
        "out": str(path / "runs"),
        "run_id": "killed",
        "pool": pool,
        "shard_size": 32,
        "models": [
            {
                "id": "local/m",
                "name": "m",
                "base_url": provider.base_url,
                "pacing": {"max_in_flight": IN_FLIGHT, "max_retries": 0},
            }
        ],
    }
    (path / "run.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path / "run.yaml"


def start(config: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "trunchray.cli.main", "run", str(config), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until_asked(provider: CountingProvider, driver: subprocess.Popen[bytes]) -> None:
    while not provider.reached.wait(0.5):
        assert driver.poll() is None, driver.communicate()[1].decode()


def counted_once(run: Path) -> None:
    keys = [row["trial_key"] for row in rows(run)]
    assert len(keys) == len(set(keys)) == TRIALS


def test_a_killed_worker_costs_at_most_what_it_had_in_flight(ray_here: None, tmp_path: Path):
    """After SIGKILL of a worker the run ends whole, every trial counts once, only what was not stored is repeated."""
    release = make_release(tmp_path, TRIALS)
    with CountingProvider(latency=0.1) as provider:
        provider.reach = TRIALS // 3
        agent = ModelAgent(
            name="m", model="local/m", base_url=provider.base_url, pacing=Pacing(max_in_flight=IN_FLIGHT, max_retries=0)
        )
        killed: list[int] = []

        def kill() -> None:
            if provider.reached.wait(60):
                killed.append(actors()[0])
                os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        report = drive(question(release, [agent], shard_size=32), release, tmp_path, pool="ray")
        killer.join()
    assert killed
    assert report.complete
    assert (report.passed, report.error) == (TRIALS, 0)
    counted_once(tmp_path / "test")
    # What the killed worker had answered but not yet stored is lost with it: at most five seconds' worth.
    assert provider.answered.total() <= TRIALS + IN_FLIGHT / 0.1 * 5


@pytest.mark.parametrize("pool", ["local", "ray"])
def test_a_killed_driver_loses_nothing_stored(pool: str, tmp_path: Path):
    """SIGKILL of the driver: the same command takes the run over at once, finishes it, and counts every trial once."""
    release = make_release(tmp_path, TRIALS)
    with CountingProvider(latency=0.1) as provider:
        provider.reach = TRIALS // 2
        settings = config(tmp_path, release, provider, pool)
        first = start(settings)
        wait_until_asked(provider, first)
        first.kill()
        first.communicate()
        second = start(settings)
        out, err = second.communicate(timeout=120)
    assert second.returncode == 0, err.decode()
    summary = json.loads(out)
    assert summary["complete"]
    assert summary["models"][0]["passed"] == TRIALS
    counted_once(tmp_path / "runs" / "killed")


def test_sigterm_stores_what_is_finished_and_exits_3(tmp_path: Path):
    """A polite end takes less than ten seconds, keeps every answer, and the same command pays for no answer again."""
    release = make_release(tmp_path, TRIALS)
    with CountingProvider(latency=0.1) as provider:
        provider.reach = TRIALS // 3
        settings = config(tmp_path, release, provider, "local")
        first = start(settings)
        wait_until_asked(provider, first)
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=10)
        assert first.returncode == 3, err.decode()
        assert b"the same command continues" in err
        second = start(settings)
        _, err = second.communicate(timeout=60)
        assert second.returncode == 0, err.decode()
        assert provider.answered.total() == TRIALS


def wait_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "processes outlived their driver"
        threading.Event().wait(0.1)


def test_a_killed_driver_leaves_no_worker_behind(tmp_path: Path):
    """When the driver of a local Ray is killed, its workers end by themselves."""
    before = set(actors())
    release = make_release(tmp_path, TRIALS)
    with CountingProvider(latency=1) as provider:
        provider.reach = 5
        first = start(config(tmp_path, release, provider, "ray"))
        wait_until_asked(provider, first)
        mine = [pid for pid in actors() if pid not in before]
        assert mine
        first.kill()
        first.communicate()
        wait_gone(mine)

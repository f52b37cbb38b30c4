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

from support.processes import actors
from support.provider import CountingProvider
from support.releases import make_release
from support.runs import drive, question, rows, unmeasured
from trunchray.adapters.releases import StoredRelease
from trunchray.core.agent import ModelAgent, Pacing

TRIALS, IN_FLIGHT = 300, 16


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


def start(config: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "trunchray.cli.main", "run", str(config), *options, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until_asked(provider: CountingProvider, driver: subprocess.Popen[bytes]) -> None:
    while not provider.reached.wait(0.5):
        assert driver.poll() is None, driver.communicate()[1].decode()


def wait_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "processes outlived their driver"
        threading.Event().wait(0.1)


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
                killed.append(actors(os.getpid())[0])
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
    """SIGKILL of the driver: the same command takes the run over at once, finishes it, and counts every trial once.

    A budget bounds what both commands cost together, though nobody knows what the first one had paid for and not
    stored. The workers of the driver's own Ray have ended by themselves.
    """
    release = make_release(tmp_path, TRIALS)
    with CountingProvider(latency=0.1) as provider:
        provider.reach = TRIALS // 3
        settings, budget = config(tmp_path, release, provider, pool), 2 * TRIALS // 3
        first = start(settings, f"--budget-tokens={10 * budget}")
        wait_until_asked(provider, first)
        workers = actors(first.pid)
        assert bool(workers) == (pool == "ray")
        first.kill()
        first.communicate()
        second = start(settings, f"--budget-tokens={10 * budget}")
        wait_gone(workers)
        _, err = second.communicate(timeout=240)
        assert second.returncode == 3, err.decode()
        assert b"budget reached" in err
        assert b"the budget counts them" in err
        assert TRIALS // 2 < provider.asked.total() <= budget
        third = start(settings, "--pool", "local")
        out, err = third.communicate(timeout=240)
    assert third.returncode == 0, err.decode()
    summary = json.loads(out)
    assert summary["complete"]
    assert summary["models"][0]["passed"] == TRIALS
    counted_once(tmp_path / "runs" / "killed")


@pytest.mark.parametrize("pool", ["local", "ray"])
def test_sigterm_stores_what_is_finished_and_exits_3(pool: str, tmp_path: Path):
    """A polite end takes less than ten seconds, keeps every answer, and the same command pays for no answer again."""
    release = make_release(tmp_path, TRIALS)
    with CountingProvider(latency=0.1) as provider:
        provider.reach = TRIALS // 3
        settings = config(tmp_path, release, provider, pool)
        first = start(settings)
        wait_until_asked(provider, first)
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=40)  # ten on a machine that is not busy
        assert first.returncode == 3, err.decode()
        assert b"the same command continues" in err
        second = start(settings)
        _, err = second.communicate(timeout=240)
        assert second.returncode == 0, err.decode()
        assert provider.answered.total() == TRIALS


def mock_config(path: Path, release: StoredRelease, name: str, latency: float) -> Path:
    models = [
        {"id": "mock/echo", "name": name, "mock": {"seed": seed, "latency": latency, "faults": {"server_error": 0.05}}}
        for seed, name in enumerate(("one", "two"))
    ]
    settings = {
        "release": release.uri,
        "out": str(path),
        "run_id": name,
        "pool": "ray",
        "shard_size": 64,
        "models": models,
    }
    file = path / f"{name}.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return file


def finish(driver: subprocess.Popen[bytes]) -> bytes:
    out, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, err.decode()
    return out


def wait_for_part(run: Path, driver: subprocess.Popen[bytes], parts: int) -> None:
    while len(list(run.glob("parts/*/*.parquet"))) < parts:
        assert driver.poll() is None, driver.communicate()[1].decode()
        time.sleep(0.05)  # the driver is another process: there is nothing to wait on but its files


def without_measured(summary: bytes) -> object:
    """A summary without its times, the only figures in it that are measured."""
    measured = {"latency", "run", "uri", "started_at", "ended_at"}

    def strip(value: object) -> object:
        match value:
            case dict():
                return {key: strip(item) for key, item in value.items() if key not in measured}
            case list():
                return [strip(item) for item in value]
            case _:
                return value

    return strip(json.loads(summary))


@pytest.mark.parametrize(("cases", "latency"), [(250, 0.1)])
def test_a_killed_run_ends_like_an_undisturbed_one(tmp_path: Path, cases: int, latency: float):
    """After SIGKILL of a worker and then of the driver, the same command ends like a run that nothing happened to.

    Rows and summary are the same but for measured times and who did the work; that one runs in its own process.
    """
    release = make_release(tmp_path, cases, check=lambda n: {"kind": "contains", "expected": f"{n % 7}"})
    undisturbed = finish(start(mock_config(tmp_path, release, "calm", latency), "--pool", "local"))

    settings = mock_config(tmp_path, release, "killed", latency)
    first = start(settings)
    wait_for_part(tmp_path / "killed", first, 1)
    os.kill(actors(first.pid)[0], signal.SIGKILL)
    wait_for_part(tmp_path / "killed", first, 3)
    first.kill()
    first.communicate()
    resumed = finish(start(settings))

    assert without_measured(resumed) == without_measured(undisturbed)
    assert unmeasured(tmp_path / "killed") == unmeasured(tmp_path / "calm")
    keys = [row["trial_key"] for row in rows(tmp_path / "killed")]
    assert len(keys) == len(set(keys)) == 2 * cases

"""A disk with no room left: what is stored stays, and the same command goes on once there is room."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import drive, question, rows
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import Mock, ModelAgent, Pacing
from trunchray.errors import StoreError

TRIALS = 160


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 96 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Writing beyond `size` bytes fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_in_the_middle(small_disk: Path, tmp_path: Path):
    """The run stops with one clear line and exit 3; what was stored is not paid for again."""
    release = make_release(tmp_path, TRIALS)
    with CountingProvider() as provider:
        pacing = Pacing(max_in_flight=16, max_retries=0)
        agent = ModelAgent(name="m", model="local/m", base_url=provider.base_url, pacing=pacing)
        with pytest.raises(StoreError, match="there is no space left for it; make room and give the same") as e:
            drive(question(release, [agent]), release, small_disk)
        assert e.value.exit_code == 3
        assert "\n" not in str(e.value)
        stored = sum(receipt.counts.rows for receipt in RunFolder(str(small_disk / "test")).commits().values())
        assert 0 < stored < TRIALS
        before = provider.answered.total()
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        assert drive(question(release, [agent]), release, small_disk, takeover=True).complete  # no room to let go
        assert provider.answered.total() - before <= TRIALS - stored
    assert len({row["trial_key"] for row in rows(small_disk / "test")}) == TRIALS
    left = [path.name for path in small_disk.rglob("*") if path.name.startswith(".")]
    assert left == [], "half-written files are removed"


def test_no_room_for_the_report(tmp_path: Path):
    """Results that do not fit are an error that names the place, and nothing that was run is run again."""
    release = make_release(tmp_path, TRIALS)
    agent = ModelAgent(name="m", model="mock/echo", mock=Mock())
    with (
        no_file_longer_than(20_000),
        pytest.raises(StoreError, match="set TMPDIR to a folder with room, and try again"),
    ):
        drive(question(release, [agent]), release, tmp_path)
    parts = sorted((tmp_path / "test" / "parts").rglob("*.parquet"))
    assert drive(question(release, [agent]), release, tmp_path).complete
    assert sorted((tmp_path / "test" / "parts").rglob("*.parquet")) == parts

from __future__ import annotations

import asyncio
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trunchray.adapters import parts
from trunchray.adapters.runs import RunFolder
from trunchray.core.receipt import PartRef
from trunchray.core.trial import Result, Trace, Trial, Verdict
from trunchray.engine.shelf import FLUSH_BYTES, LAST_WAITS, SOON, Shelf
from trunchray.errors import StoreError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(number: int, output: str = "x") -> dict[str, Any]:
    result = Result(
        trial=Trial(key=f"k{number}", case_id=f"c{number}", agent="a", attempt=1),
        eval_id="e",
        agent_digest="d",
        trace=Trace(output=output),
        verdict=Verdict(passed=True, score=1),
        started_at=NOW,
        ended_at=NOW,
    )
    return parts.row(result, release_digest="r", versions="{}")


class Ticks:
    """Time that passes only when a test lets it."""

    def __init__(self) -> None:
        self._go = asyncio.Event()
        self._asleep = asyncio.Event()

    async def sleep(self, _seconds: float) -> None:
        self._asleep.set()
        await self._go.wait()
        self._go.clear()

    async def tick(self) -> None:
        """Let one sleep end, and wait until whatever follows it is done."""
        await self._asleep.wait()
        self._asleep.clear()
        self._go.set()
        await self._asleep.wait()


@pytest.fixture
def folder() -> RunFolder:
    return RunFolder(f"memory://{uuid.uuid4().hex}")


def keys(folder: RunFolder) -> list[list[str]]:
    """The trial keys of each stored part."""
    return [[key for key, _ in parts.marks(parts.decode(folder.store.read(path)))] for path in folder.part_names("s")]


async def test_what_is_left_is_stored_at_the_end(folder: RunFolder):
    """Leaving the block stores every row, as one part when little came, and says which."""
    async with Shelf(folder, "s", sleep=Ticks().sleep) as shelf:
        for number in range(3):
            await shelf.add(row(number))
        assert keys(folder) == []
    assert keys(folder) == [["k0", "k1", "k2"]]
    assert [(part.path, part.rows) for part in shelf.parts] == [(folder.part_names("s")[0], 3)]


async def test_rows_do_not_wait_longer_than_a_tick(folder: RunFolder):
    """Every few seconds what has come is stored, so a kill costs little; nothing is written when nothing came."""
    ticks = Ticks()
    async with Shelf(folder, "s", sleep=ticks.sleep) as shelf:
        await shelf.add(row(0))
        await ticks.tick()
        assert keys(folder) == [["k0"]]
        await ticks.tick()
        assert len(keys(folder)) == 1
        await shelf.add(row(1))
    assert sorted(keys(folder)) == [["k0"], ["k1"]]


async def test_a_full_shelf_is_stored_at_once(folder: RunFolder):
    """Large rows do not pile up in memory until the next tick."""
    async with Shelf(folder, "s", sleep=Ticks().sleep) as shelf:
        await shelf.add(row(0, "x" * FLUSH_BYTES))
        assert keys(folder) == [["k0"]]


async def test_a_store_that_fails_for_a_while_costs_nothing(tmp_path: Path):
    """Rows that could not be stored wait for the next flush; only the last failure is raised."""
    (tmp_path / "parts").write_bytes(b"in the way")
    folder, ticks = RunFolder(str(tmp_path)), Ticks()
    async with Shelf(folder, "s", sleep=ticks.sleep) as shelf:
        await shelf.add(row(0))
        await ticks.tick()
        (tmp_path / "parts").unlink()
        await shelf.add(row(1))
    assert keys(folder) == [["k0", "k1"]]

    (tmp_path / "parts").rename(tmp_path / "elsewhere")
    (tmp_path / "parts").write_bytes(b"in the way")
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0 if seconds in LAST_WAITS else 999)

    with pytest.raises(StoreError, match="parts/s"):
        async with Shelf(folder, "s", sleep=sleep) as shelf:
            await shelf.add(row(2))
    assert [seconds for seconds in waits if seconds in LAST_WAITS] == list(LAST_WAITS)


async def test_a_write_under_way_is_not_made_twice(tmp_path: Path):
    """Whoever is cancelled while rows are being stored waits for the end of that, so no row is stored again."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(RunFolder):
        def add_part(self, shard: str, content: bytes, rows: int) -> PartRef:
            begun.set()
            assert go_on.wait(10)
            return super().add_part(shard, content, rows)

    folder = Slow(str(tmp_path))
    async with Shelf(folder, "s", sleep=Ticks().sleep) as shelf:
        await shelf.add(row(0))
        flushing = asyncio.create_task(shelf.flush())
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(2):
            flushing.cancel()
            await asyncio.sleep(0)
        assert not flushing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await flushing
    assert keys(folder) == [["k0"]]
    assert [part.rows for part in shelf.parts] == [1]


async def test_a_shard_that_was_lost_before_is_stored_more_often(folder: RunFolder) -> None:
    """How long rows wait at most is up to the worker."""
    waited: list[float] = []
    begun = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        begun.set()
        await asyncio.Event().wait()

    async with Shelf(folder, "s", every=SOON, sleep=sleep) as shelf:
        await shelf.add(row(1))
        await begun.wait()
    assert waited == [SOON]

"""A pool on an event loop that belongs to somebody else, who may cancel anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.releases import make_release
from support.runs import question
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.core.ledger import Dispatch, Lost
from trunchray.core.plan import make_plan
from trunchray.engine.local import LocalPool


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_work_that_is_cancelled_before_it_begins_is_lost(tmp_path: Path, loop: asyncio.AbstractEventLoop):
    """Whoever waits for a shard hears of it, and can give it out again."""
    release, folder = make_release(tmp_path / "releases", 1), RunFolder(str(tmp_path / "run"))
    spec = question(release, [ModelAgent(name="echo", model="mock/echo")])
    folder.freeze(spec)
    (shard,) = make_plan(spec, release.cases().index).shards
    pool = LocalPool(folder.uri, release.uri, loop=loop)
    go_on = threading.Event()
    loop.call_soon_threadsafe(go_on.wait, 60)  # so that what comes next is done in this order
    pool.submit(Dispatch(shard.id, 1, shard.agent.name))
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    go_on.set()
    event = pool.next_event(timeout=60)
    assert isinstance(event, Lost)
    assert (event.shard, event.attempt) == (shard.id, 1)
    assert "Cancelled" in event.reason
    pool.submit(Dispatch(shard.id, 2, shard.agent.name))
    assert pool.next_event(timeout=60)
    pool.close()

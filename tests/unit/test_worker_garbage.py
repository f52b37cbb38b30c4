"""What an open worker does to the process it is in."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.releases import make_release
from support.runs import question
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.engine.worker import YOUNG_OBJECTS, Place, Worker


async def nobody(_demands: object) -> None:
    """A governor that does not answer."""


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [((700, 10, 10), (YOUNG_OBJECTS, 10, 10)), ((500_000, 5, 5), (500_000, 5, 5)), ((0, 10, 10), (0, 10, 10))],
    ids=["usual", "already seldom", "switched off"],
)
async def test_garbage_is_looked_for_less_often_while_a_worker_is_open(before, meanwhile, tmp_path: Path):
    """An open worker makes collections rarer, never more frequent, and puts back what it found."""
    release = make_release(tmp_path / "releases", 1)
    folder = RunFolder(str(tmp_path / "run"))
    folder.freeze(question(release, [ModelAgent(name="echo", model="mock/echo")]))
    gc.set_threshold(*before)
    worker = await Worker.open(folder.uri, release.uri, Place("here"), nobody)
    assert gc.get_threshold() == meanwhile
    await worker.close()
    assert gc.get_threshold() == before

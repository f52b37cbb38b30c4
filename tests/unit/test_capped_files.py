"""Files of bounded size, and work that is not interrupted."""

from __future__ import annotations

import asyncio
import io

import pytest

from trunchray.adapters.capped_file import CappedFile
from trunchray.adapters.uninterrupted import uninterrupted


@pytest.mark.parametrize("pieces", [1, 3, 7, 100])
def test_what_has_room_is_kept_as_it_is(pieces: int):
    """Up to the last byte, however it comes."""
    opened = io.BytesIO()
    file = CappedFile(opened, most=20, tail=5)
    content = b"0123456789abcdefghij"
    for start in range(0, len(content), pieces):
        file.write(content[start : start + pieces])
    file.close()
    assert opened.getvalue() == content
    assert not file.truncated


@pytest.mark.parametrize("pieces", [1, 3, 7, 100])
def test_what_has_not_loses_its_middle(pieces: int):
    """The beginning and the end are kept, and how much is missing between them."""
    opened = io.BytesIO()
    file = CappedFile(opened, most=20, tail=5)
    content = bytes(range(65, 91)) + b"12345"
    for start in range(0, len(content), pieces):
        file.write(content[start : start + pieces])
    file.close(b"!")
    assert opened.getvalue().decode() == "ABCDEFGHIJKLMNO\n[… 11 bytes are left out here …]\n12345!"
    assert file.truncated
    file.close()


async def test_uninterrupted_work_ends_before_its_cancellation():
    """Whoever is cancelled twice still waits, and is cancelled then."""
    ended: list[str] = []
    go = asyncio.Event()

    async def work() -> None:
        await go.wait()
        ended.append("work")

    task = asyncio.create_task(uninterrupted(work()))
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["work"]


async def test_uninterrupted_work_returns_and_raises_what_it_does():
    """It is awaited as if it were not there."""

    async def fails() -> None:
        raise ValueError("no")

    assert await uninterrupted(asyncio.sleep(0, "yes")) == "yes"
    with pytest.raises(ValueError, match="no"):
        await uninterrupted(fails())

"""Which line of its author's code an error comes from."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.checked import a_run
from trunchray.adapters.raised_at import raised_at
from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.task import as_task
from trunchray.evaluators.python.code_check import run_check


def read(text: str) -> object:
    return json.loads(text)


def test_the_innermost_line_that_is_the_authors(monkeypatch: pytest.MonkeyPatch):
    """Not that of a library which it calls; a file below the current directory is named from there."""
    with pytest.raises(json.JSONDecodeError) as raised:
        read("{")
    line = read.__code__.co_firstlineno + 1
    monkeypatch.chdir(Path(__file__).parents[1])
    assert raised_at(raised.value) == f" (unit/test_raised_at.py:{line})"
    monkeypatch.chdir("/")
    assert raised_at(raised.value) == f" ({__file__[1:]}:{line})"
    assert raised_at(ValueError("never raised")) == ""


async def test_a_task_and_a_check_that_raise_say_where(monkeypatch: pytest.MonkeyPatch):
    """Sync or async."""
    monkeypatch.chdir(Path(__file__).parent)
    here = "test_raised_at.py"

    def raises(_: object) -> bool:
        raise ValueError("no")

    async def raises_later(_: object) -> bool:
        await asyncio.sleep(0)
        raise ValueError("no")

    for function in (raises, raises_later):
        line = function.__code__.co_firstlineno + (1 if function is raises else 2)
        returned = await as_task(function).run("hi", CancelSignal())
        assert returned.error == f"ValueError: no ({here}:{line})"
        result = await run_check(function, a_run(), 60)
        assert result.explanation == f"raised ValueError: no ({here}:{line})"

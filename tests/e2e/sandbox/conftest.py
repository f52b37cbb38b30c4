"""Evaluators for tests, and a sandbox that must leave nothing behind."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.processes import descendants
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox
from trunchray.adapters.sandbox.launcher import sandbox_level


@pytest.fixture
async def sandbox() -> AsyncIterator[EvaluatorSandbox]:
    """Two slots and short patience; whatever a test did, no process is left at its end."""
    sandbox_level()  # the process that starts all others stays
    before = descendants(os.getpid())
    sandbox = EvaluatorSandbox(slots=2, deadline=1.5)
    yield sandbox
    await sandbox.close()
    left = descendants(os.getpid()) - before
    assert not left, described(left)


def described(pids: set[int]) -> list[str]:
    """For messages."""
    found: list[str] = []
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(
                f"{Path(f'/proc/{pid}/stat').read_text()[:60]} {Path(f'/proc/{pid}/cmdline').read_bytes()[:80]!r}"
            )
    return found

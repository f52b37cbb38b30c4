"""Evaluators for tests, and a sandbox that must leave nothing behind."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox


def children() -> set[int]:
    """The processes that this one has started and not yet reaped."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


@pytest.fixture
async def sandbox() -> AsyncIterator[EvaluatorSandbox]:
    """Two slots and short patience; whatever a test did, no process is left at its end."""
    before = children()
    sandbox = EvaluatorSandbox(slots=2, deadline=1.5)
    yield sandbox
    await sandbox.close()
    assert children() <= before

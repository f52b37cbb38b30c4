"""What is refused before a run has left anything behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.releases import make_release
from support.runs import drive, question
from trunchray.core.agent import ModelAgent
from trunchray.errors import UsageError


def test_an_address_that_the_local_pool_would_not_use(tmp_path: Path):
    """Two settings that exclude each other are named, and no folder of a run is begun."""
    release = make_release(tmp_path / "releases", 1)
    spec = question(release, [ModelAgent(name="echo", model="mock/echo")])
    with pytest.raises(UsageError, match=r"address 'head:6379' names a Ray cluster, .* leave one out"):
        drive(spec, release, tmp_path / "runs", pool="local", address="head:6379")
    assert not (tmp_path / "runs").exists()

"""Benches for attempts of skill evals."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.attempt_bench import Bench
from support.s3 import Bucket


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, str(tmp_path / "out"))


@pytest.fixture(params=["local", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A bench whose attempts are kept on this machine, or on an S3 server."""
    if request.param == "local":
        return Bench(tmp_path, str(tmp_path / "out"))
    bucket: Bucket = request.getfixturevalue("s3")
    return Bench(tmp_path, f"{bucket.uri}/out")

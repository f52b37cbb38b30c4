"""A folder for benchmarks, and an empty cache for their packages."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.packages import benchmark
from trunchray.adapters.sandbox.esbuild_binary import esbuild_binary


@pytest.fixture
def make(tmp_path) -> Callable[..., Path]:
    """Make the benchmark in a new folder of this test."""
    return lambda name="b", **files: benchmark(tmp_path / name, **files)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache, but for the bundler, which is not what these tests are about."""
    bundler = esbuild_binary()
    folder = tmp_path / "cache"
    folder.mkdir()
    shutil.copy(bundler, folder / bundler.name)
    monkeypatch.setenv("TRUNCHRAY_CACHE", str(folder))
    return folder

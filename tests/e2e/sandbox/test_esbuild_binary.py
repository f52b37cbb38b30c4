"""Fetching esbuild: once, from anywhere at the same time, and with advice when it cannot be."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.esbuild_binary import ESBUILD_VERSION, esbuild_binary
from trunchray.errors import UsageError


def test_two_that_fetch_at_once_both_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache holds one whole executable afterwards, and using it again needs no network."""
    monkeypatch.setenv("TRUNCHRAY_CACHE", str(tmp_path / "cache"))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: esbuild_binary(), range(2))
    assert first == second
    assert list((tmp_path / "cache").iterdir()) == [first]
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    done = subprocess.run([esbuild_binary(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ESBUILD_VERSION


def test_an_unreachable_registry_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is needed and how to name another registry; nothing half-made is left."""
    monkeypatch.setenv("TRUNCHRAY_CACHE", str(tmp_path))
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    with pytest.raises(UsageError, match="network access to the npm registry is needed once"):
        esbuild_binary()
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says where, and how to choose another place."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRUNCHRAY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UsageError, match="set TRUNCHRAY_CACHE to another directory"):
        esbuild_binary()

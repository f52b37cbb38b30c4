"""Inputs of runs that are kept elsewhere, as workers read them."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunchray.adapters.input_cache import InputCache
from trunchray.adapters.runs import RunFolder
from trunchray.errors import StoreError


@pytest.fixture
def folder() -> RunFolder:
    return RunFolder(f"memory://{uuid.uuid4().hex}/run")


def test_an_input_is_fetched_once(folder: RunFolder, tmp_path: Path):
    """The store may lose it afterwards; also where many ask at the same time, and an empty one is one, too."""
    names = [folder.keep_input(content) for content in (b"skill" * 1000, b"")]
    cache = InputCache(folder, tmp_path)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(cache, names[:1] * 16)) == {b"skill" * 1000}
    assert cache(names[1]) == b""
    folder.store.remove(f"inputs/{names[0]}")
    assert cache(names[0]) == b"skill" * 1000
    cache.close()
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_changed_is_fetched_again(folder: RunFolder, tmp_path: Path):
    """Coding tools run as our user: what they write there is given to nobody."""
    name = folder.keep_input(b"skill")
    cache = InputCache(folder, tmp_path)
    cache(name)
    (kept,) = tmp_path.rglob(name)
    kept.write_bytes(b"something else")
    assert cache(name) == b"skill"
    kept.write_bytes(b"something else")
    folder.store.remove(f"inputs/{name}")
    with pytest.raises(StoreError, match="is gone"):
        cache(name)
    cache.close()


def test_a_run_on_this_machine_is_read_where_it_is(tmp_path: Path):
    """There is no second copy."""
    folder = RunFolder(str(tmp_path / "run"))
    name = folder.keep_input(b"skill")
    (tmp_path / "kept").mkdir()
    cache = InputCache(folder, tmp_path / "kept")
    assert cache(name) == b"skill"
    assert list((tmp_path / "kept").iterdir()) == []
    cache.close()

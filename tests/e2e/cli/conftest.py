"""A working directory, a command line in it, and something to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import CommandLine
from support.releases import make_release
from trunchray.adapters.releases import StoredRelease


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return tmp_path


@pytest.fixture
def trunchray(here: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(here, capsys)


@pytest.fixture
def release(here: Path) -> StoredRelease:
    """Eight cases; a model that echoes its prompt passes them all."""
    return make_release(here / "releases", 8)

"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trunchray.adapters import disk


def killed_when_it_syncs(action: str, path: Path) -> None:
    """A process that writes a file and is killed when all of it is written, and not yet there."""
    child = os.fork()
    if child == 0:
        disk.os.fsync = lambda _file: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        getattr(disk, action)(path, b"new")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")
def test_a_process_that_is_killed_while_it_creates_a_file_leaves_nothing(tmp_path: Path):
    """Neither a part of the file nor one under another name."""
    killed_when_it_syncs("create", tmp_path / "folder" / "file")
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_created_file_is_whole_and_like_any_other(tmp_path: Path):
    """Others may read it as far as the umask lets them; the first one stays."""
    other = tmp_path / "other"
    other.touch()
    disk.create(tmp_path / "file", b"first")
    disk.create(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert (tmp_path / "file").stat().st_mode == other.stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "other"]


def test_what_a_killed_process_leaves_of_its_scratch_is_removed(tmp_path: Path):
    """The next process tidies up, so that rows which were being counted do not fill the disk."""
    code = (
        "import os, signal, sys\nfrom trunchray.adapters import disk\nwith disk.scratch() as folder:\n"
        "    (folder / 'rows').touch()\n    if sys.argv[1:]: os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for more, left in (["killed"], 1), ([], 0):
        subprocess.run([sys.executable, "-c", code, *more], env=environment, check=not more)
        assert len([*tmp_path.rglob("rows")]) == left
    (place,) = tmp_path.iterdir()
    assert [*place.iterdir()] == []

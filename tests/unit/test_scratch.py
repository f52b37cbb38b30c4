"""Temporary folders: whose they are, and which of them are left over."""

import fcntl
import os
import tempfile

import pytest

from trunchray.adapters.scratch import scratch, sweep
from trunchray.errors import UsageError


def test_a_folder_lasts_as_long_as_its_block(tmp_path):
    """It is empty, nobody else's, and gone afterwards with what was put into it, also after an error."""
    with scratch(tmp_path) as folder:
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "a").mkdir()
        (folder / "a" / "b").touch()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError), scratch(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_only_what_nobody_has_locked_is_removed(tmp_path):
    """The folder of a killed process goes; that of a running one, and whatever has no lock file, stays."""
    for name in ("killed", "running", "other"):
        (tmp_path / name / "inside").mkdir(parents=True)
    (tmp_path / "killed.lock").touch()
    with (tmp_path / "running.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with scratch(tmp_path) as folder:
            kept = {"running", "running.lock", "other", folder.name, f"{folder.name}.lock"}
            assert {path.name for path in tmp_path.iterdir()} == kept
            (tmp_path / "late.lock").touch()
            sweep(tmp_path)
            assert {path.name for path in tmp_path.iterdir()} == kept


def test_whatever_a_killed_process_has_left_is_removed(tmp_path):
    """Folders in folders without end too, and what its owner may not change, such as a cache of modules."""
    room = tmp_path / "killed"
    room.mkdir()
    (tmp_path / "killed.lock").touch()
    deep = os.open(room, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("x", dir_fd=deep)
        below = os.open("x", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    (room / "cache").mkdir()
    (room / "cache" / "module").touch(0o400)
    (room / "cache").chmod(0o500)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_was_put_in_the_place_of_a_folder_is_not_followed(tmp_path):
    """A link there goes, and what it leads to stays."""
    (tmp_path / "precious").mkdir()
    place = tmp_path / "place"
    place.mkdir()
    with scratch(place) as folder:
        folder.rmdir()
        folder.symlink_to(tmp_path / "precious")
    assert list(place.iterdir()) == []
    assert (tmp_path / "precious").is_dir()


def test_a_lock_file_that_is_a_link_is_left_alone(tmp_path):
    """A link in the place of a lock file leads nobody to something else."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "target").touch()
    (tmp_path / "precious.lock").symlink_to(tmp_path / "target")
    sweep(tmp_path)
    assert (tmp_path / "precious").is_dir()


def test_somebody_elses_place_is_not_used(tmp_path, monkeypatch):
    """Where others can write, or a link stands, nothing is put, because it could be changed there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = tmp_path / f"trunchray-{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(UsageError, match="is not yours alone; remove it, or set TMPDIR"), scratch():
        pass
    place.rmdir()
    place.symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is not yours alone"), scratch():
        pass
    place.unlink()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="there is no place for temporary files"), scratch():
        pass

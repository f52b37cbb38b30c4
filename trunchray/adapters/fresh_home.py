"""The home folder of one run: empty, but for what keeps a tool logged in."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from trunchray.adapters.tree import TreeError, copy_file, followed
from trunchray.core.harness import Harness
from trunchray.core.inside import inside

MOST_OF_HOME = 1 << 30
"""Bytes of all home files together."""
_OF_MACOS = "Library"
"""The folder in a home that only macOS has."""


def prepare_home(home: Path, harness: Harness, host_home: Path, *, most: int = MOST_OF_HOME) -> list[str]:
    """Make the folders that variables name, and bring the home files; what of these is missing, as warnings.

    A file is copied. A folder is copied as well, except on macOS, whose keychains work in their place only: there it is
    a link, and the tool may write to what it leads to. Nobody is warned of what is in macOS alone, nor of what has gone
    from a folder, or may not be listed or read there. `most` is in bytes.

    Raises:
        OSError: they cannot be read.
        TreeError: they are too large.
        ValueError: a variable names a folder that is outside.
    """
    for folder in harness.home_folders:
        (home / inside(folder)).mkdir(parents=True, exist_ok=True)
    left = most
    for path, source, target in _brought(home, harness, host_home):
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        # The home is in use: what was there a moment ago may have gone. What may not be read is passed over, too.
        with suppress(FileNotFoundError, PermissionError):
            left -= source.stat().st_size
            if left < 0:
                raise TreeError(
                    f"home_files have more than {most >> 20:,} MiB with {path!r}; name what the tool needs of it"
                )
            copy_file(source, target)
            shutil.copymode(source, target)
    missing = [file for file in harness.home_files if _is_missed(host_home, file)]
    return [f"home_files: {file!r} is no file or folder on this machine that may be read" for file in missing]


def _brought(home: Path, harness: Harness, host_home: Path) -> Iterator[tuple[str, Path, Path]]:
    """By the path in `home_files`, each file and folder that is copied, and where it comes to stand."""
    for file in harness.home_files:
        source, target = host_home / file, home / file
        if not is_brought(source):
            continue
        if source.is_dir() and sys.platform == "darwin":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
            continue
        yield file, source, target
        if source.is_dir():
            yield from ((file, found, target / path) for path, found in followed(source, frozenset(), strict=False))


def is_brought(path: Path) -> bool:
    """Whether it is a file or a folder; nothing is raised for names that no file can have."""
    try:
        return path.is_file() or path.is_dir()
    except OSError:
        return False


def _is_missed(host_home: Path, file: str) -> bool:
    of_macos = PurePosixPath(file).parts[:1] == (_OF_MACOS,)
    source = host_home / file
    return not (is_brought(source) and os.access(source, os.R_OK)) and (sys.platform == "darwin" or not of_macos)

"""Whether a folder is still what it was."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path


def tree_digest(folder: Path) -> str:
    """64 hex digits of all names below a folder, what files hold and where links lead; modes and times do not count.

    Raises:
        OSError: something cannot be read.
    """
    found = hashlib.sha256()
    for entry in sorted(_entries(folder)):
        found.update(b"".join(len(part).to_bytes(8, "big") + part for part in entry))
    return found.hexdigest()


def _entries(folder: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Path, kind and content of each."""
    for root, folders, files in os.walk(folder, onerror=_refuse):
        for name in (*folders, *files):
            path = Path(root, name)
            yield os.fsencode(path.relative_to(folder)), *_content(path)


def _content(path: Path) -> tuple[bytes, bytes]:
    if path.is_symlink():
        return b"link", os.fsencode(path.readlink())
    if path.is_dir():
        return b"folder", b""
    if not path.is_file():
        return b"special", b""
    with path.open("rb") as file:
        return b"file", hashlib.file_digest(file, "sha256").digest()


def _refuse(error: OSError) -> None:
    raise error

"""Files that appear whole or not at all, whenever the process or the machine dies."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Put a file in place of whatever is there; readers see the old one or the new one."""
    temporary = _temporary(path, content)
    try:
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_with(path: Path, source: Path) -> None:
    """As `replace`, with a copy of another file."""
    temporary = _temporary(path)
    try:
        shutil.copyfile(source, temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def create(path: Path, content: bytes) -> None:
    """Put a file only where there is none: its name appears with the whole content, or somebody else's stays."""
    temporary = _temporary(path, content)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path, content: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    if content is not None:
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return temporary

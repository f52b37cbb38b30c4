"""A path on this machine as somebody wrote it: in a config, in a command."""

from __future__ import annotations

import os
from pathlib import Path

from trunchray.core.excerpt import excerpt
from trunchray.errors import UsageError


def storable(path: Path) -> Path:
    """The path, which can be written into what a run stores.

    Raises:
        UsageError: it is not UTF-8, and so no text.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as e:
        raise UsageError(f"{excerpt(str(path), 200)!r} is not UTF-8, which runs cannot store; rename it") from e
    return path


def local_path(text: str) -> Path:
    """The path, with what `~` stands for in its place.

    Raises:
        UsageError: no file can be called that, or nobody knows whose home is meant.
    """
    try:
        if b"\0" in os.fsencode(text):
            raise UsageError(f"{excerpt(text, 200)!r} is no path: it holds a NUL character")
        return Path(text).expanduser()
    except UnicodeEncodeError as e:
        raise UsageError(f"{excerpt(text, 200)!r} is no path: {e.reason}") from e
    except RuntimeError as e:
        raise UsageError(f"{excerpt(text, 200)!r} is no path: there is no home folder of that name") from e

"""Relative paths that stay inside the folder they are relative to."""

from __future__ import annotations

import posixpath
import re

UNNAMEABLE = re.compile("[\\x00-\\x1f\\x7f\\ud800-\\udfff]")
"""Characters that no path has here: control characters, and lone surrogates, which no store can name."""


def inside(path: str) -> str:
    """The path in its shortest form, with forward slashes; "." is the folder itself.

    Raises:
        ValueError: it is absolute, leads out of its folder, is one of Windows, or no file can have that name.
    """
    if not path:
        raise ValueError("is empty")
    if found := UNNAMEABLE.search(path):
        raise ValueError(f"{path!r} holds {found[0]!r}, a control character or a lone surrogate; rename the file")
    if "\\" in path or re.match("[A-Za-z]:", path):
        raise ValueError(f"{path!r} is a path of Windows; write it with forward slashes, relative to its folder")
    if path.startswith(("/", "~")):
        raise ValueError(f"{path!r} is not relative; write it relative to its folder")
    if ".." in path.split("/"):
        raise ValueError(f"{path!r} leads out of its folder; write it without '..'")
    return posixpath.normpath(path)

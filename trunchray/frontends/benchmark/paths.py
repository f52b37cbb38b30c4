"""Paths as authors write them: POSIX, relative, and inside the repository."""

from __future__ import annotations

import posixpath
import re

from trunchray.core.inside import UNNAMEABLE
from trunchray.frontends.benchmark.site import MODULE_SUFFIXES
from trunchray.frontends.benchmark.staging import LARGE_FILE, Stage


def bad_syntax(path: str) -> str | None:
    """What is wrong with an authored path, before any file is looked at; None when nothing is."""
    if not path.strip():
        return "must not be empty"
    if "\\" in path:
        return "must be written with '/', not '\\'"
    if UNNAMEABLE.search(path):
        return "must not hold a NUL, another control character or a broken one"
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        return "must be relative, not absolute"
    return None


def bad_file(stage: Stage, path: str) -> str | None:
    """Why a normalised path, relative to the benchmark directory, names no file of the repository, or None."""
    target = stage.directory / path
    if not target.parent.resolve().is_relative_to(stage.root):
        return "leads out of the repository"
    stage.bring(path)
    if not target.is_file():
        return stage.missing(path)
    return None if target.resolve().is_relative_to(stage.root) else "leads out of the repository"


def bad_module(stage: Stage, path: str) -> str | None:
    """The same for a path that has to name a JavaScript or TypeScript module."""
    if not path.endswith(MODULE_SUFFIXES):
        return "must be a .ts, .mts, .js or .mjs module"
    if stage.waits(path):
        return f"has more than {LARGE_FILE // 10**6} MB, too much for a module (keep its data in a file of its own)"
    return bad_file(stage, path)


def relative_to_module(module: str, path: str) -> str:
    """An authored path that is relative to a module, normalised and relative to the benchmark directory."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), path))

"""Monorepos: which folders are members of the package at their root."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from trunchray.frontends.benchmark.dependencies.manifest import Manifest, ManifestRefused, catalogs_of
from trunchray.frontends.benchmark.dependencies.yaml_document import read_yaml

PNPM_WORKSPACE = "pnpm-workspace.yaml"


def workspace(folder: Path, manifest: Manifest) -> tuple[tuple[str, ...], Mapping[str, Mapping[str, str]]]:
    """The patterns that name members, and the catalogs, of the package in a folder.

    Raises:
        ManifestRefused: the file that declares them cannot be read.
    """
    if not (folder / PNPM_WORKSPACE).is_file():
        return manifest.workspaces, manifest.catalogs
    try:
        data: Any = read_yaml((folder / PNPM_WORKSPACE).read_bytes()) or {}
        patterns = tuple(str(pattern) for pattern in data.get("packages") or ())
        return (*manifest.workspaces, *patterns), {**manifest.catalogs, **catalogs_of(data)}
    except (ValueError, AttributeError, TypeError) as e:
        raise ManifestRefused(f"stands beside a {PNPM_WORKSPACE} that cannot be read ({e}); correct it") from e


def is_member(folder: str, patterns: tuple[str, ...]) -> bool:
    """Whether a folder, relative to the root, is named by patterns; one that begins with `!` takes back."""
    chosen = False
    for pattern in patterns:
        negative = pattern.startswith("!")
        if _named(folder.split("/"), [part for part in pattern.removeprefix("!").split("/") if part not in ("", ".")]):
            chosen = not negative
    return chosen


def members(root: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    """The folders with a package.json that patterns name, relative to `root` and sorted."""
    if not patterns:
        return
    for here, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "node_modules")
        folder = Path(here).relative_to(root).as_posix()
        if folder != "." and "package.json" in files and is_member(folder, patterns):
            yield folder


def _named(folders: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path are as those of a pattern; `**` inside of one may also stand for no folder."""
    reached = {0}
    for index, part in enumerate(pattern):
        if part == "**":
            least = 0 if 0 < index < len(pattern) - 1 else 1
            reached = set(range(min(reached, default=len(folders)) + least, len(folders) + 1))
        else:
            only_stars = re.sub(r"[\[?]", r"[\g<0>]", part)
            reached = {at + 1 for at in reached if at < len(folders) and fnmatchcase(folders[at], only_stars)}
    return len(folders) in reached

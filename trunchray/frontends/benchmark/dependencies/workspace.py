"""Monorepos: which folders are members of the package at their root."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
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
        if _regex(pattern.removeprefix("!")).fullmatch(folder):
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


def _regex(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    text = "/".join(".+" if part == "**" else re.escape(part).replace(r"\*", "[^/]*") for part in parts)
    return re.compile(text.replace("/.+/", "/(?:.+/)?"))

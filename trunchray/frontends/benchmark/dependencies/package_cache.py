"""Installed packages by what was asked for, so that the same request is installed once and then needs no network.

An entry is one file: a line of JSON, the record, and then a tar archive of all `node_modules`. It gets its name by an
atomic rename, and its content is compared with the record's hash whenever it is used, so an entry that is half written
or damaged is none at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from trunchray.adapters.scratch import scratch

_LEFT_OUT = (".d.ts", ".d.mts", ".d.cts", ".map")
"""No bundle holds type declarations or source maps, and they are half of what is installed."""


@dataclass(frozen=True)
class Record:
    """What is known of installed packages: each with name, version and hash, sorted."""

    packages: tuple[tuple[str, str, str], ...]


class PackageCache:
    """Entries in `folder`, by key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, key: str, target: Path) -> Record | None:
        """Unpack an entry into `target`; None when there is no whole one."""
        try:
            with (self._folder / f"{key}.tar").open("rb") as file:
                record = _record(file, key)
                if record is not None:
                    _unpack(file, target)
                return record
        except FileNotFoundError:
            return None

    def put(self, key: str, source: Path, record: Record) -> None:
        """Pack every `node_modules` below `source`. Of two processes that do so at once, one replaces the other's."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with scratch(self._folder) as folder:
            archive, entry = folder / "archive", folder / "entry"
            with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
                for path in _wanted(source):
                    tar.add(path, path.relative_to(source).as_posix(), recursive=False, filter=_anonymous)
            with archive.open("rb") as packed, entry.open("wb") as file:
                digest = hashlib.file_digest(packed, "sha256").hexdigest()
                file.write(json.dumps({"key": key, "sha256": digest, **asdict(record)}).encode() + b"\n")
                packed.seek(0)
                shutil.copyfileobj(packed, file)
                file.flush()
                os.fsync(file.fileno())
            entry.replace(self._folder / f"{key}.tar")


def _record(file: IO[bytes], key: str) -> Record | None:
    """The record of an entry, with the file at the start of its archive; None when it does not fit the archive."""
    try:
        data: Any = json.loads(file.readline())
        start = file.tell()
        if data["key"] != key or hashlib.file_digest(file, "sha256").hexdigest() != data["sha256"]:  # type: ignore[arg-type] # a real file
            return None
        file.seek(start)
        return Record(tuple((name, version, digest) for name, version, digest in data["packages"]))
    except (ValueError, KeyError, TypeError):
        return None


def _unpack(file: IO[bytes], target: Path) -> None:
    with tarfile.open(fileobj=file, mode="r|") as tar:
        tar.extractall(target, filter="data")


def _wanted(source: Path) -> Iterator[Path]:
    """Everything inside `node_modules` folders, folders first, in an order that does not depend on the file system."""
    for here, folders, files in os.walk(source):
        folders.sort()
        inside = "node_modules" in Path(here).relative_to(source).parts
        links = [name for name in folders if (Path(here) / name).is_symlink()]
        if inside:
            yield Path(here)
            yield from (Path(here) / name for name in sorted([*links, *files]) if not name.endswith(_LEFT_OUT))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member

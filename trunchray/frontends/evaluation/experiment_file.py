"""Experiments in files, wherever those are: a path, or the URI of an object."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from trunchray.adapters import disk
from trunchray.adapters.location import absolute, opened
from trunchray.adapters.store import Store
from trunchray.core.excerpt import excerpt
from trunchray.core.experiment import Experiment
from trunchray.core.json_object import distinct
from trunchray.errors import StoreError, UsageError

Comparable = str | os.PathLike[str] | Experiment | Mapping[str, object]
"""A file, an experiment of this process, or one as it is written."""


def read_experiment(compare: Comparable | None, *, name: str) -> Experiment | None:
    """What an evaluation of that name is compared with; None when it says nothing, or names a file that is not there.

    Raises:
        UsageError: it cannot be read, is not an experiment of format 2, or is one of another evaluation.
    """
    if compare is None:
        return None
    where, found = _experiment(compare)
    if found is not None and found.name != name:
        raise UsageError(
            f"{where}: it belongs to {excerpt(found.name, 80)!r}, not to {excerpt(name, 80)!r}; compare with "
            "an experiment of the same name, or leave `compare` out"
        )
    return found


def save_place(save: object) -> str:
    """The place where an experiment is to be written, wherever the process is by then.

    Before anything is paid for it is made sure that files can be made there, or that the store can be asked at all.

    Raises:
        UsageError: it is neither a path nor a URI, names no file, cannot be written, or its store cannot be reached.
    """
    if not isinstance(save, str | os.PathLike) or not isinstance(location := os.fspath(save), str):
        raise UsageError(
            f"save: {excerpt(repr(save), 60)} is not a file; give a path or a URI such as s3://bucket/e.json"
        )
    store, name = _opened("save", location)
    if problem := _problem(store, name):
        raise UsageError(f"save: {excerpt(location, 200)!r} {problem}")
    place = absolute(location)
    return place if store.folder is None else str(Path(place).resolve())  # a link stays one, to the new file


def _problem(store: Store, name: str) -> str | None:
    """Why a file cannot be made in a store, as far as that can be found out without making it."""
    if store.folder is not None:
        return _problem_in(store.folder, name)
    try:
        store.exists(name)
    except StoreError as e:
        if isinstance(e.__cause__, PermissionError):  # some may write and not read
            return None
        return f"cannot be written: {e}"
    return None


def _problem_in(folder: Path, name: str) -> str | None:
    """Why a file cannot be made in a folder, which may have to be made first."""
    path = folder / name
    try:
        if path.is_dir():
            return "is a folder; name a file in it"
        if path.exists() and not path.is_file():
            return "is a device or the like, and would be replaced; name a file, or leave `save` out"
        path = path.resolve()
    except (OSError, RuntimeError) as e:  # links that lead to each other are a RuntimeError
        return f"cannot be written: {e.strerror if isinstance(e, OSError) else e}"
    closed = disk.unwritable(path.parent)
    return f"cannot be written: {closed}; name another place" if closed else None


def write_experiment(save: str | os.PathLike[str], experiment: Experiment) -> None:
    """Put it in place of whatever is there; readers see the old file or the new one, never half of one.

    Raises:
        StoreError: it cannot be written.
    """
    store, name = _opened("save", os.fspath(save))
    store.write(name, experiment.to_bytes())


def _experiment(compare: Comparable) -> tuple[str, Experiment | None]:
    """And where it is from, as messages say it."""
    match compare:
        case Experiment():
            return "compare", compare
        case Mapping():
            return "compare", Experiment.parse(compare, "compare")
        case str() | os.PathLike():
            location = os.fspath(compare)
            where = f"compare {excerpt(location, 200)!r}"
            return where, _read(location, where)
        case _:
            raise UsageError(
                f"compare: {excerpt(repr(compare), 60)} is not an experiment; give a file, or a report's `.experiment`"
            )


def _read(location: str, where: str) -> Experiment | None:
    store, name = _opened("compare", location)
    if store.folder and (path := store.folder / name).exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"{where}: is a device or the like; name a file, or leave `compare` out")
    try:
        content = store.read(name)
    except FileNotFoundError:
        return None
    except StoreError as e:
        raise UsageError(f"{where}: cannot be read: {e}; name another file, or leave `compare` out") from e
    try:
        return Experiment.parse(json.loads(content, object_pairs_hook=distinct), where)
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{where}: it is not JSON: {e}; mend it, or leave `compare` out") from e


def _opened(key: str, location: str) -> tuple[Store, str]:
    try:
        return opened(location)
    except UsageError as e:
        raise UsageError(f"{key}: {e}") from e

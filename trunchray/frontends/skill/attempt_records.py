"""What is known of attempts, one flat record each: a JSON file of them, or a folder below which they are kept."""

from __future__ import annotations

import re
from collections.abc import Collection

from pydantic import JsonValue

from trunchray.adapters.attempt_folder import timings
from trunchray.adapters.local_path import local_path
from trunchray.adapters.location import is_uri
from trunchray.adapters.store import Store
from trunchray.core.frozen import Frozen
from trunchray.core.json_object import parse_object
from trunchray.core.staging import ENGINE
from trunchray.errors import UsageError
from trunchray.frontends.skill.entry import kind
from trunchray.frontends.skill.json_file import read_json

_WANTED = "give a run folder or a JSON file of records"

_ATTEMPT = re.compile(r"run-\d+|(q\d{3,})-r\d+")


class AttemptRecords(Frozen):
    """Records, and what their reader should know."""

    records: tuple[dict[str, JsonValue], ...]
    notes: tuple[str, ...] = ()


def read_records(location: str) -> AttemptRecords:
    """The records at a place: a JSON list, an object with the list `runs`, or every `timing.json` below a folder.

    Files in the workspace of an attempt (`cwd/`) do not count. A `timing.json` that cannot be read is left out, with a
    note. A record without a case gets that of its folder.

    Raises:
        UsageError: there is no such place, or no record in it.
    """
    found = _of_file(location) if _is_file(location) else _of_folder(location)
    if not found.records:
        reasons = "".join(f"; {note}" for note in found.notes)
        raise UsageError(f"{location}: has no records of attempts{reasons}; {_WANTED}")
    return found.model_copy(update={"notes": (*found.notes, *_mixed(location, found.records))})


def _is_file(location: str) -> bool:
    if is_uri(location):
        return location.endswith(".json")
    path = local_path(location.removeprefix("file://"))
    if not path.exists():
        raise UsageError(f"no such file or folder: {location!r}; {_WANTED}")
    return not path.is_dir()


def _of_file(location: str) -> AttemptRecords:
    value = read_json(location, "the records")
    listed = value.get("runs") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise UsageError(f"{location}: records are a list, or an object with the list 'runs', not {kind(value)}")
    records = [record for record in listed if isinstance(record, dict)]
    others = len(listed) - len(records)
    return AttemptRecords(
        records=tuple(records),
        notes=(f"{location}: {others} entries are not objects and are left out",) if others else (),
    )


def _of_folder(location: str) -> AttemptRecords:
    store = Store(location)
    paths = [path for path in store.find() if ENGINE not in path.split("/")]
    records: list[dict[str, JsonValue]] = []
    damaged: list[str] = []
    for path, content in sorted(store.read_many(timings(paths)).items()):
        try:
            records.append(_named(path, parse_object(content.decode())))
        except ValueError:
            damaged.append(path)
    notes = (f"{', '.join(damaged[:5])}: not valid JSON objects, left out ({len(damaged)})",) if damaged else ()
    return AttemptRecords(records=tuple(records), notes=notes)


def _named(path: str, record: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The record with its case: `create-1` of `skill/create-1/run-2`, `q003` of `queries/q003-r0`."""
    folders = path.split("/")[:-1]
    if record.get("case_id") is not None or not folders:
        return record
    found = _ATTEMPT.fullmatch(folders[-1])
    case = (found[1] or "/".join(folders[-2:-1])) if found else folders[-1]
    return record | {"case_id": case} if case else record


def _mixed(location: str, records: Collection[dict[str, JsonValue]]) -> list[str]:
    """What makes figures over all records mean less than they seem to."""
    notes: list[str] = []
    configs = sorted({str(record["config"]) for record in records if "config" in record})
    if len(configs) > 1:
        notes.append(f"{location}: the figures mix the configs {', '.join(configs)}; give the folder of one config")
    silent = sum(record.get("tokens_reported") is False for record in records)
    if silent:
        notes.append(f"{location}: {silent} of {len(records)} attempts report no tokens and count as 0")
    return notes

"""A run's folder on the store: who may drive it, what was asked, which parts count.

run.json                      the question, written first
lease.json, claims/<n>.json   who drives
progress.json                 the last snapshot, for people who look on
spending.json                 what each model may have cost at most, of runs with a budget
inputs/<sha256>               files the workers need besides the release (recorded outputs)
parts/<shard>/<name>.parquet  rows, written by workers as they go; names sort as parts came
commits/<shard>/<n>.json      which parts count; the highest n does
report/                       what was made of them; results.basis.json says from which commits results.parquet was
experiment.json               of an evaluation from Python: what it found, written when its call ends
regrades/<name>/              runs that grade the answers of this one anew
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json, to_json

from trunchray.adapters.store import Store
from trunchray.core.budget import Spend
from trunchray.core.digest import sha256
from trunchray.core.frozen import first_problem
from trunchray.core.receipt import PartRef, Receipt
from trunchray.core.run import RunSpec
from trunchray.errors import StoreError, UsageError

T = TypeVar("T")

READERS = 8
"""Shards whose parts are fetched at a time, and at most held."""


class RunFolder:
    """One run, wherever it is stored. Safe to use from several processes; the lease keeps drivers apart."""

    def __init__(self, uri: str) -> None:
        self.store = Store(uri)
        self._known: dict[str, tuple[int, Receipt]] = {}  # the last commit seen of each shard; commits never change
        self._listed = False

    @property
    def uri(self) -> str:
        return self.store.uri

    def spec(self) -> RunSpec | None:
        """The question of the run; None when there is no run here yet.

        Raises:
            UsageError: what is stored is not a run of a version this one can read.
        """
        try:
            return self.decoded("run.json", RunSpec.model_validate_json)
        except FileNotFoundError:
            return None
        except ValidationError as e:
            raise UsageError(
                f"{self.uri}/run.json is not a run that this version can read ({first_problem(e).removeprefix(': ')}); "
                "use the version that started it or, if the file is damaged, restore it from a copy; else choose "
                "another --run-id"
            ) from e

    def freeze(self, spec: RunSpec, *, first: bool = False) -> None:
        """Write the question down. The caller holds the lease. `first`: there was none until now.

        Raises:
            UsageError: another process has just written another one.
        """
        content = spec.model_dump_json(indent=2).encode() + b"\n"
        if not first:
            self.store.write("run.json", content)
        elif not self.store.create("run.json", content):
            raise UsageError(f"another process has just started a run in {self.uri}; give the same command again")

    def keep_input(self, content: bytes) -> str:
        """Store a file that workers need, under its SHA-256, which is returned."""
        name = sha256(content)
        if not self.store.exists(f"inputs/{name}"):
            self.store.write(f"inputs/{name}", content)
        return name

    def input(self, name: str) -> bytes:
        """A kept file.

        Raises:
            StoreError: it is gone or damaged.
        """
        try:
            content = self.store.read(f"inputs/{name}")
        except FileNotFoundError as e:
            raise StoreError(f"{self.uri}/inputs/{name} is gone; run the command again to store it anew") from e
        if sha256(content) != name:
            raise StoreError(f"{self.uri}/inputs/{name} is damaged; delete it and run the command again")
        return content

    def part_names(self, shard: str) -> list[str]:
        """The paths of all stored parts of a shard, sorted."""
        return [f"parts/{shard}/{name}" for name in self.store.names(f"parts/{shard}") if name.endswith(".parquet")]

    def add_part(self, shard: str, content: bytes, rows: int) -> PartRef:
        """Store rows under a name of their own, which begins with the time, so that names sort as parts came."""
        path = f"parts/{shard}/{time.time_ns():020d}-{uuid.uuid4().hex}.parquet"
        self.store.write(path, content)
        return PartRef(path=path, rows=rows, sha256=sha256(content))

    def begun(self) -> set[str]:
        """The shards that have parts."""
        return set(self.store.names("parts"))

    def last_commits(self) -> dict[str, int]:
        """The number of the commit that counts for each committed shard, as their names alone tell."""
        highest: dict[str, int] = {}
        for path in self.store.find("commits"):
            shard, _, name = path.removeprefix("commits/").rpartition("/")
            if n := _number(name):
                highest[shard] = max(n, highest.get(shard, 0))
        return highest

    def commits(self) -> dict[str, Receipt]:
        """The receipt that counts for each committed shard."""
        highest = self.last_commits()
        # Our own are there, whether they are listed yet or not.
        new = {shard: _commit_path(shard, n) for shard, n in highest.items() if n > self._seen(shard)}
        bodies = self.store.read_many(new.values())
        self._known |= {shard: (highest[shard], self._receipt(path, bodies[path])) for shard, path in new.items()}
        self._listed = True
        return {shard: receipt for shard, (_, receipt) in self._known.items()}

    def last_commit(self, shard: str) -> Receipt | None:
        """The receipt that counts for one shard; None when it has none."""
        if n := self._last(shard):
            path = _commit_path(shard, n)
            return self._receipt(path, self.store.read_many([path])[path])
        return None

    def commit(self, receipt: Receipt) -> Receipt:
        """Write a receipt down as the next commit of its shard; the one that counts is returned.

        When another driver was faster, its commit counts, unless it lacks more trials: each takes the number after the
        last one that it saw when it looked at the run as a whole, so that a driver that slept meanwhile cannot have
        the last word. What says the same as the last one seen is not written again.
        """
        body: JsonValue = {"format": 1, "token": uuid.uuid4().hex, "receipt": receipt.model_dump(mode="json")}
        known = self._known.get(receipt.shard)
        if known and receipt.parts and known[1].parts == receipt.parts and known[1].holds_as_much(receipt):
            return known[1]
        n = self._seen(receipt.shard) if self._listed else self._last(receipt.shard)
        while True:
            n += 1
            path = _commit_path(receipt.shard, n)
            ours = self.store.create(path, to_json(body))
            counts = receipt if ours else self._receipt(path, self.store.read_many([path])[path])
            self._known[receipt.shard] = n, counts
            if ours or counts.holds_as_much(receipt):  # else it is of another plan, and counts for nobody
                return counts

    def _seen(self, shard: str) -> int:
        return self._known[shard][0] if shard in self._known else 0

    def _last(self, shard: str) -> int:
        return max(map(_number, self.store.names(f"commits/{shard}")), default=0)

    def _receipt(self, path: str, body: bytes) -> Receipt:
        def parse(body: bytes) -> Receipt:
            return Receipt.model_validate(from_json(body)["receipt"])

        try:
            return self._parsed(path, body, parse)
        except (ValueError, KeyError, TypeError, FileNotFoundError) as e:
            raise StoreError(f"{path} is damaged; delete it, and its shard is completed from its parts") from e

    def _parsed(self, path: str, content: bytes, parse: Callable[[bytes], T]) -> T:
        try:
            return parse(content)
        except (ValueError, KeyError, TypeError, StoreError):
            return parse(self.store.read(path))

    def decoded(self, path: str, decode: Callable[[bytes], T]) -> T:
        """What an object means; when it has no meaning, it is read once more, because an answer may be torn.

        Raises:
            ValueError, KeyError, TypeError, StoreError: as `decode` does both times.
        """
        return self._parsed(path, self.store.read(path), decode)

    def read_parts(self, receipt: Receipt) -> tuple[list[tuple[str, bytes]], list[str]]:
        """The receipt's parts in order, each with its path, and the paths of those that are gone or damaged."""
        contents: list[tuple[str, bytes]] = []
        damaged: list[str] = []
        for part in receipt.parts:
            content = self._part(part)
            if content is None:
                damaged.append(part.path)
            else:
                contents.append((part.path, content))
        return contents, damaged

    def _part(self, part: PartRef) -> bytes | None:
        for _ in range(2):  # an answer may be torn
            try:
                content = self.store.read(part.path)
            except FileNotFoundError:
                return None
            if sha256(content) == part.sha256:
                return content
        return None

    def write_report(self, name: str, content: bytes | Path) -> str:
        """Store a file of the report; its URI is returned."""
        path = f"report/{name}"
        if isinstance(content, Path):
            self.store.put(path, content)
        else:
            self.store.write(path, content)
        return f"{self.uri}/{path}"

    def write_results(self, file: Path, question: str) -> None:
        """Store the rows that count by the commits seen last, and beside them a note of what they were counted from."""
        self.write_report("results.parquet", file)
        commits = {shard: n for shard, (n, _) in self._known.items()}
        note: JsonValue = {"basis": _basis(question, commits), "bytes": file.stat().st_size}
        self.write_report("results.basis.json", to_json(note, indent=2))

    def results_size(self, question: str, commits: Mapping[str, int]) -> int | None:
        """The bytes of the stored results, when they are by these commits; None when they are not, or nobody knows."""
        try:
            note = from_json(self.store.read("report/results.basis.json"))
            return int(note["bytes"]) if note["basis"] == _basis(question, commits) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write_spending(self, levels: Mapping[str, Spend]) -> None:
        """Put down what each agent may have cost at most."""
        self.store.write("spending.json", to_json({name: spend.measures for name, spend in levels.items()}))

    def spending(self) -> dict[str, Spend]:
        """What was put down last; nothing when there is none.

        Raises:
            StoreError: it is damaged.
        """
        try:
            return self.decoded("spending.json", _spending)
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, AttributeError) as e:
            raise StoreError(
                f"{self.uri}/spending.json is damaged, so nobody knows what killed commands may have spent; delete it, "
                "and only what is stored counts"
            ) from e

    def write_progress(self, snapshot: JsonValue) -> None:
        """Put the snapshot in place of the one before, for people who look on."""
        self.store.write("progress.json", to_json(snapshot, indent=2))

    def progress(self) -> JsonValue:
        """The last snapshot, or None."""
        try:
            return from_json(self.store.read("progress.json"))
        except (FileNotFoundError, ValueError):
            return None


def _basis(question: str, commits: Mapping[str, int]) -> str:
    """What decides which rows count. Commits never change, so their numbers say all about them."""
    return sha256(to_json([question, sorted(commits.items())]))


def _commit_path(shard: str, n: int) -> str:
    return f"commits/{shard}/{n}.json"


def _spending(content: bytes) -> dict[str, Spend]:
    return {str(name): Spend(int(cost), int(tokens)) for name, (cost, tokens) in from_json(content).items()}


def _number(name: str) -> int:
    """Which commit an object is; 0 when it is none, but what a writer left that was killed."""
    number = name.removesuffix(".json")
    return int(number) if name.endswith(".json") and number.isascii() and number.isdecimal() else 0

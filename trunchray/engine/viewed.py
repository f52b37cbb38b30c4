"""A stored run that is looked at while it may still go on: its counted rows, kept up to date in an index.

Rows are read where they are. When the run's `results.parquet` was made from the commits of the moment, it holds them
all; else they are in the parts that those commits list. Parts are checked against their hashes, as reports do.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from glob import has_magic
from pathlib import Path
from typing import Any

from trunchray.adapters.releases import CaseTable
from trunchray.adapters.runs import READERS, RunFolder
from trunchray.adapters.trial_index import TrialHead, TrialIndex
from trunchray.core.agent import PythonAgent
from trunchray.core.plan import make_plan, select
from trunchray.core.receipt import Receipt
from trunchray.core.run import RunSpec
from trunchray.engine.progress import question
from trunchray.engine.status import Status, StatusReader
from trunchray.engine.stored import stored_release, stored_spec
from trunchray.errors import StoreError


class ViewedRun:
    """One run. Not safe to use from several threads, but for `row`."""

    def __init__(self, run_uri: str, number: int, index: TrialIndex, scratch: Path) -> None:
        """`number` is the run's in the index. What it cannot read where it is gets fetched to the folder `scratch`.

        Raises:
            UsageError: there is no run at `run_uri`.
            ReleaseError: its release is gone or damaged.
        """
        self.number = number
        self._folder = RunFolder(run_uri)
        self._index, self._status = index, StatusReader(run_uri)
        self.spec = stored_spec(self._folder)
        self.cases: CaseTable = stored_release(self.spec).cases()
        self.evals = dict(select(self.spec.selection, self.cases.index))
        """Of the chosen cases, in release order."""
        self.notes: tuple[str, ...] = ()
        """What is wrong with its rows."""
        self.version = 0
        """Another one whenever other rows count."""
        self._looked: object = None
        self._seen: tuple[RunSpec, dict[str, int]] | None = None
        self._from_results = False
        self._shown: dict[str, Receipt] = {}
        self._damaged: dict[str, list[str]] = {}
        folder = self._folder.store.folder
        self._in_place = folder is not None and not has_magic(str(folder))  # else DuckDB would look for a pattern
        self._files = folder if folder and self._in_place else scratch / str(number)
        index.add_cases(list(self.evals))

    @property
    def own(self) -> bool:
        """Whether it is of Python code: its cases and checks are then of whoever looks, and give no stranger away."""
        return all(isinstance(agent, PythonAgent) for agent in self.spec.agents)

    def look(self) -> Status:
        """How far the run is; its rows in the index are those that count now.

        Raises:
            StoreError: something cannot be read.
        """
        status = self._status.read()
        if status.state != "complete" or status.committed != self._looked:
            seen = stored_spec(self._folder), self._folder.last_commits()
            if seen != self._seen:
                self._refresh(*seen)
            self._seen, self._looked = seen, status.committed
        return status

    def row(self, head: TrialHead) -> dict[str, Any]:
        """The whole row of a trial of the run, as `parts.records` gives it.

        Raises:
            StoreError: the run went on meanwhile, and its rows are elsewhere now.
        """
        from trunchray.adapters import parts  # noqa: PLC0415 - it takes a fifth of a second; nobody looks at a row first

        path = self._index.path(head.file)
        found = parts.record(path, head.line) if path else None
        told = (head.case_id, head.model, head.attempt)
        if found is None or (found["case_id"], found["agent"], found["attempt"]) != told:
            raise StoreError(f"the rows of run {self.spec.run_id!r} have just changed; look again")
        return found

    def _refresh(self, spec: RunSpec, commits: Mapping[str, int]) -> None:
        """Go by what is asked and committed now; models and attempts may have been added."""
        self.spec = spec
        size = self._folder.results_size(question(spec), commits)
        if size is not None and (results := self._results(size)):
            self._index.replace(self.number, results)
            self._from_results, self._shown, self.notes = True, {}, ()
            self.version += 1
        else:
            self._take_parts()

    def _results(self, size: int) -> Path | None:
        """The file of all counted rows; None when it is not the one that has so many bytes."""
        path = self._files / "report" / "results.parquet"
        try:
            if not self._in_place:
                path = path.with_name(f"{self.version}.parquet")  # somebody may still read the one before
                self._folder.store.fetch("report/results.parquet", path)
            return path if path.stat().st_size == size else None
        except FileNotFoundError:
            return None

    def _take_parts(self) -> None:
        """Have the parts of the shards that were committed since the last look."""
        shards = {shard.id: shard for shard in make_plan(self.spec, self.cases.index).shards}
        new = {
            shard: receipt
            for shard, receipt in self._folder.commits().items()
            if shard in shards and receipt != self._shown.get(shard) and receipt.is_of(shards[shard].keys_digest())
        }
        if not new and not self._from_results:
            return
        with ThreadPoolExecutor(READERS) as threads:
            bundles = dict(zip(new, threads.map(self._part_files, new.values()), strict=True))
        self._index.update(self.number, bundles, anew=not self._shown)
        self._shown |= new
        self._from_results = False
        self.notes = tuple(_missing(shard, paths) for shard, paths in self._damaged.items())
        self.version += 1

    def _part_files(self, receipt: Receipt) -> list[Path]:
        """Where the receipt's parts can be read; those that cannot are remembered as damaged."""
        contents, damaged = self._folder.read_parts(receipt)
        if damaged:
            self._damaged[receipt.shard] = damaged
        else:
            self._damaged.pop(receipt.shard, None)
        for path, content in contents:
            if not self._in_place:
                target = self._files / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        return [self._files / path for path, _ in contents]


def _missing(shard: str, paths: list[str]) -> str:
    return f"shard {shard}: {', '.join(paths)}: missing or damaged, the trials there are left out"

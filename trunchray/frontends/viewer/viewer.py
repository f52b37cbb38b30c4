"""What the pages of the viewer ask for: each question is a query of a URL, each answer a JSON value."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pydantic import JsonValue

from trunchray.adapters.store import Store
from trunchray.adapters.trial_index import Excerpt, TrialHead, TrialIndex
from trunchray.core.case import Case
from trunchray.core.names import nearest
from trunchray.core.trial_search import PAGE, TrialSearch
from trunchray.engine.status import Status
from trunchray.engine.viewed import ViewedRun
from trunchray.errors import UsageError
from trunchray.frontends.viewer.passages import Passage, asked, kept_private, remarks, shown, told

PAGES = Path(__file__).parents[2] / "pages" / "view"
"""The files that browsers load."""

Query = Mapping[str, str]

LOOKS = 3.0
"""Seconds that a look at the runs is good for."""

_MEASURED = (
    "finish_reason",
    "usage",
    "latency",
    "cost_usd",
    "retries",
    "rate_limit_wait",
    "cache_hits",
    "saved_tokens",
)
_KNOWN_BY = ("trial_key", "model", "request_id", "worker", "evaluator_digest")
_ADDED = ("earlier_errors", "reused")
"""Columns that rows of older versions do not have."""


class Viewer:
    """Some runs, to be looked at by several people at a time. `clock` counts seconds from anywhere."""

    def __init__(
        self,
        run_uris: Sequence[str],
        scratch: Path,
        *,
        private: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`private`: also tell what only grading knows of a case. `scratch` is an empty folder.

        What checks said is private where they quote the answer key of somebody else's benchmark. Those of a Python
        evaluation are of whoever looks, who wants to know why a case misses: they are told in any case.

        Raises:
            UsageError: there is no run at one of the URIs, or DuckDB is not installed.
            ReleaseError: the release of one is gone or damaged.
            StoreError: something cannot be read.
        """
        there = [folder for uri in run_uris if (folder := Store(uri).folder)]
        self._index = TrialIndex([scratch, *there])
        self._runs = [ViewedRun(uri, number, self._index, scratch) for number, uri in enumerate(run_uris)]
        self._told = [private or run.own for run in self._runs]
        for run in self._runs:
            if self._told[run.number]:
                self._index.search_messages(run.number)
        self._names = _different([run.spec.run_id for run in self._runs])
        self._private, self._clock = private, clock
        self._looking = Lock()
        self._states = [run.look() for run in self._runs]
        self._looked = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._index.close()

    @property
    def questions(self) -> dict[str, Callable[[Query], JsonValue]]:
        """All that can be asked, by name. Each raises a UsageError when the query makes no sense, or a StoreError."""
        asked = (self.runs, self.trials, self.case, self.beside, self.answer, self.passage)
        return {question.__name__: question for question in asked}

    def runs(self, _query: Query = MappingProxyType({})) -> JsonValue:
        """The runs as they are now: what there is to choose from, and how far they are."""
        with self._looking:
            self._look()
            described = [
                _described(name, run, state)
                for name, run, state in zip(self._names, self._runs, self._states, strict=True)
            ]
            return {"runs": [*described]}

    def trials(self, query: Query) -> JsonValue:
        """One page of the trials that are searched for."""
        search = TrialSearch.read(query)
        total, heads = self._index.find(search, self._number(search.run))
        excerpts = self._index.excerpts(heads)
        listed: list[JsonValue] = [
            self._listed(head) | {"message": self._message(head, excerpt), "output": excerpt.output}
            for head, excerpt in zip(heads, excerpts, strict=True)
        ]
        return {"total": total, "page": search.page, "pages": max(1, -(-total // PAGE)), "trials": listed}

    def beside(self, query: Query) -> JsonValue:
        """The cases before and after the one with the `id`, in the order of a search."""
        search = TrialSearch.read(query)
        found = self._index.beside(_given(query, "id"), search, self._number(search.run))
        return dict(found._asdict()) if found else None

    def case(self, query: Query) -> JsonValue:
        """The case with the `id`: what it asks in each of the runs, and the trials of it."""
        case_id = self.find_case(_given(query, "id"))
        with self._looking:
            self._look()
        named = zip(self._names, self._runs, strict=True)
        asked = {name: self._asked(run.cases[case_id]) for name, run in named if case_id in run.cases}
        versions: list[JsonValue] = []
        for place, version in enumerate(asked.values()):
            if version not in [*asked.values()][:place]:
                runs: list[JsonValue] = [name for name, other in asked.items() if other == version]
                versions.append({**version, "runs": runs})
        answers: list[JsonValue] = [self._listed(head) for head in self._index.answers(case_id)]
        hidden = [] if self._private else ["private"] if all(self._told) else ["private", "verdicts"]
        return {"id": case_id, "hidden": [*hidden], "versions": versions, "answers": answers}

    def answer(self, query: Query) -> JsonValue:
        """One trial: its verdict, what it took, and its passages from number `start` on."""
        row = self._row(query)
        passages, start = told(row), _count(query, "start")
        failure = row["failure"]
        about: dict[str, JsonValue] = {
            "outcome": row["outcome"],
            "score": row["score"],
            "failure": None if failure is None else f"{failure['boundary']}/{failure['type']}",
            "began": row["started_at"].isoformat(),
            "remarks": shown(self._remarks(query, row)),
        }
        about |= {name: row[name] for name in (*_MEASURED, *_KNOWN_BY)}
        about |= {name: row.get(name) for name in _ADDED}
        return {**about, "passages": shown(passages, start), "count": len(passages)}

    def passage(self, query: Query) -> JsonValue:
        """All of the passage with the number `start`: of a case, of a trial of it or of the trial's `remarks`."""
        if "model" not in query:
            passages = self._passages(self._run(query).cases[_given(query, "id")])
        else:
            row = self._row(query)
            passages = self._remarks(query, row) if "remarks" in query else told(row)
        number = _count(query, "start")
        if number >= len(passages):
            raise UsageError(f"start: {number} is not one of {len(passages)} passages, counted from 0")
        return passages[number].text

    def find_case(self, name: str) -> str:
        """The id of a case, by its id or by the name that its author gave it, which is its title.

        Raises:
            UsageError: no run has it, or several cases have that name.
        """
        if any(name in run.cases for run in self._runs):
            return name
        titles = {case.id: case.title for run in self._runs for case in run.cases}
        found = [case_id for case_id, title in titles.items() if title == name]
        if len(found) > 1:
            raise UsageError(f"{len(found)} cases of these runs are called {name!r}; name one by its id: {_few(found)}")
        if not found:
            raise UsageError(
                f"no case {name!r} in these runs{nearest(name, dict.fromkeys([*titles, *titles.values()]))}"
            )
        return found[0]

    def _look(self) -> None:
        """Have the runs as they are now, unless somebody has just looked; whoever calls this holds `_looking`."""
        if self._clock() - self._looked >= LOOKS:
            self._states = [run.look() for run in self._runs]
            self._looked = self._clock()

    def _row(self, query: Query) -> dict[str, Any]:
        """The row of the trial that a query names: run, model, case and attempt."""
        run, case_id, model = self._run(query), _given(query, "id"), _given(query, "model")
        attempt = _count(query, "attempt")
        if head := self._index.trial(run.number, case_id, model, attempt):
            return run.row(head)
        raise UsageError(f"run {query['run']!r} has no row of attempt {attempt} of {model!r} at case {case_id!r}")

    def _remarks(self, query: Query, row: Mapping[str, Any]) -> list[Passage]:
        run = self._run(query)
        return remarks(row, run.cases[row["case_id"]], private=self._told[run.number])

    def _run(self, query: Query) -> ViewedRun:
        return self._runs[self._number(_given(query, "run")) or 0]

    def _number(self, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self._names:
            raise UsageError(f"run: no run {name!r} here{nearest(name, self._names)}")
        return self._names.index(name)

    def _message(self, head: TrialHead, excerpt: Excerpt) -> str | None:
        """What a list says besides the outcome: evaluators quote what they expect."""
        return excerpt.message if self._told[head.run] or head.outcome == "error" else None

    def _listed(self, head: TrialHead) -> dict[str, JsonValue]:
        return {
            "run": self._names[head.run],
            "case": head.case_id,
            "eval": head.eval,
            "model": head.model,
            "attempt": head.attempt,
            "outcome": head.outcome,
            "score": head.score,
            "failure": head.failure,
            "tokens": head.tokens,
            "cost": head.cost,
            "seconds": head.seconds,
        }

    def _asked(self, case: Case) -> dict[str, JsonValue]:
        return {
            "title": case.title,
            "description": case.description,
            "eval": case.eval_id,
            "source": case.source.path + (f":{case.source.row}" if case.source.row else ""),
            "tools": [*case.input.tools],
            "checks": [f"{name}: {check.kind}" for name, check in case.checks.items()],
            "passages": shown(self._passages(case)),
        }

    def _passages(self, case: Case) -> list[Passage]:
        return [*asked(case), *(kept_private(case) if self._private else [])]


def _described(name: str, run: ViewedRun, state: Status) -> JsonValue:
    return {
        "name": name,
        "title": run.spec.title,
        "release": run.spec.release_digest,
        "state": state.state,
        "rows": state.committed.rows,
        "planned": state.committed.planned,
        "models": [agent.name for agent in run.spec.agents],
        "evals": list(dict.fromkeys(run.evals.values())),
        "attempts": run.spec.attempts,
        "version": run.version,
        "notes": [*run.notes],
    }


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _different(names: Sequence[str]) -> list[str]:
    """The names, with a number where one stands for several runs."""
    seen = Counter[str]()
    found: list[str] = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _given(query: Query, name: str) -> str:
    if not query.get(name):
        raise UsageError(f"{name}: is missing")
    return query[name]


def _count(query: Query, name: str) -> int:
    text = query.get(name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"{name}: {text!r} is no number")
    return int(text)

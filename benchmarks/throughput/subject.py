"""What is measured: a release made without a compiler, and runs of it that say what they took."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import Any, Literal

import pyarrow.parquet as pq
from measure import Effort, Exertion, Usage
from pydantic_core import to_json

from trunchray.adapters.lease import HeldLease
from trunchray.adapters.releases import StoredRelease, open_release, write_release
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.store import Store
from trunchray.core.agent import Mock, ModelAgent, Pacing
from trunchray.core.digest import sha256
from trunchray.core.plan import make_plan
from trunchray.core.release import Compiler, Release, ReleaseCases, ReleaseEval, ReleaseTool, sealed
from trunchray.core.report import Report
from trunchray.core.run import RunSpec
from trunchray.engine.local import LocalPool
from trunchray.engine.progress import Snapshot
from trunchray.engine.run import Pool, Run

KEY = "THROUGHPUT_KEY"
"""The environment variable of a key that nobody asks for."""

SYSTEM = "Answer with the final number only. " * 4
PROMPT = "Add up what the shop sold on each day of the week and say how much that is. " * 13
"""About 1 KB, as prompts of benchmarks are."""


def prompt(number: int) -> str:
    """The prompt of the `number`-th case."""
    return f"{number}: {PROMPT}"


ADD = b"""
const inputSchema = { jsonSchema: { type: "object" } };
export const tools = { add: { description: "Adds.", inputSchema, execute: ({ a, b }) => a + b } };
export const asSchema = (schema) => schema;
export const version = "6.0.0";
"""
"""A bundle of a tool, without a library."""


def make_release(root: str, cases: int, *, tools: bool = False) -> StoredRelease:
    """A release of `cases` cases in ten evals, each with the check that its answer contains "42".

    With `tools`, each case has the tool `add`.
    """
    lines = [to_json(_case(number, ["add"] if tools else [])) + b"\n" for number in range(cases)]
    content = b"".join(lines)
    evals = [(f"e{group}", len(range(group, cases, 10))) for group in range(min(10, cases))]
    release = Release(
        title="Throughput",
        version="1.0.0",
        evals=tuple(ReleaseEval(id=name, title=name, cases=count, path=f"evals/{name}.ts") for name, count in evals),
        cases=ReleaseCases(count=cases, sha256=sha256(content), bytes=len(content)),
        tools=(ReleaseTool(name="add", description="Adds.", input_schema={"type": "object"}, module=sha256(ADD)),),
        compiler=Compiler(trunchray="0", deno="0", esbuild="0"),
    )
    return open_release(write_release(Store(root), sealed(release), content, {sha256(ADD): ADD}).uri)


def _case(number: int, tools: list[str]) -> dict[str, Any]:
    return {
        "id": f"case-{number:05d}",
        "evalId": f"e{number % 10}",
        "title": f"Case {number}",
        "description": "",
        "input": {"prompt": prompt(number), "systemPrompt": SYSTEM, "tools": tools},
        "data": None,
        "checks": {"evaluate": {"kind": "contains", "expected": "42"}},
        "source": {"path": f"evals/e{number % 10}.ts", "row": number // 10 + 1},
    }


def echo(name: str = "echo", *, permits: int = 256, seed: int = 0) -> ModelAgent:
    """A model in the worker's own process; agents of different seeds are different models."""
    return ModelAgent(name=name, model="mock/echo", mock=Mock(seed=seed), pacing=Pacing(max_in_flight=permits))


def served(base_url: str, *, permits: int = 256, model: str = "vllm/fixed", litellm: bool = False) -> ModelAgent:
    """A model behind an endpoint."""
    os.environ[KEY] = "not-a-key"
    return ModelAgent(
        name="served",
        model=model,
        base_url=base_url,
        transport="litellm" if litellm else "openai",
        api_key_env=KEY,
        pacing=Pacing(max_in_flight=permits),
    )


def question(release: StoredRelease, agents: Sequence[ModelAgent]) -> RunSpec:
    """All cases, once."""
    return RunSpec(
        run_id="throughput",
        title="Throughput",
        release=release.uri,
        release_digest=release.release.digest,
        agents=tuple(agents),
    )


@dataclass(frozen=True)
class Ran:
    """A run in figures; seconds, and megabytes for peaks."""

    trials: int
    start: float
    """Until the pool is ready."""
    work: float
    """From the first dispatch until the last shard is committed."""
    report: float
    """Aggregation."""
    spent: Usage
    """While working, reporting not included."""
    effort: Effort
    """All from when the pool is ready, reporting included; on Ray without the workers, who are gone by then."""


class Onlooker:
    """Says nothing."""

    def progress(self, snapshot: Snapshot) -> None:
        """Nothing."""

    def note(self, message: str) -> None:
        """Nothing."""

    def warn(self, message: str) -> None:
        print(f"warning: {message}")


class _Watched:
    """A pool that remembers when it was ready and when it was given up, and what had been used by then."""

    def __init__(self, kind: Literal["local", "ray"], run_uri: str, release_uri: str, workers: int) -> None:
        began = time.monotonic()
        self._pool: Pool = LocalPool(run_uri, release_uri) if kind == "local" else _ray(run_uri, release_uri, workers)
        self.start = time.monotonic() - began
        self.workers = workers if kind == "ray" else 1
        self.submit, self.next_event, self.progress = self._pool.submit, self._pool.next_event, self._pool.progress
        self.standing, self.nodes, self.stop = self._pool.standing, self._pool.nodes, self._pool.stop
        self.exertion, self._began = Exertion(), time.monotonic()

    def close(self) -> None:
        self.work, self.spent = time.monotonic() - self._began, self.exertion.spent()
        self._pool.close()
        self.closed = time.monotonic()


def _ray(run_uri: str, release_uri: str, workers: int) -> Pool:
    from trunchray.engine.cluster import RayPool  # noqa: PLC0415 - takes a second
    from trunchray.engine.seating import Seating  # noqa: PLC0415

    class Ready(RayPool):
        """Whose workers have read the release."""

        def __init__(self) -> None:
            super().__init__(run_uri, release_uri, seating=Seating(workers=workers))
            while self.starting:
                self.next_event(0.2)

    return Ready()


def carry_out(spec: RunSpec, release: StoredRelease, run_uri: str, open_pool: Callable[[], Pool]) -> Report:
    """Run what is not counted yet, as `trunchray run` does."""
    folder = RunFolder(run_uri)
    lease = HeldLease.take(folder.store)
    folder.freeze(spec)
    plan, wanted = make_plan(spec, release.cases().index), [agent.name for agent in spec.agents]
    try:
        return Run(plan, folder, lease=lease, open_pool=open_pool, wanted=wanted, observer=Onlooker(), stop=Flag())()
    finally:
        lease.release()


def drive(spec: RunSpec, release: StoredRelease, out: str, pool: Literal["local", "ray"], *, workers: int = 2) -> Ran:
    """Run the question from its beginning."""
    run_uri = f"{out}/{spec.run_id}"
    opened: list[_Watched] = []

    def open_pool() -> Pool:
        opened.append(_Watched(pool, run_uri, release.uri, workers))
        return opened[-1]

    report = carry_out(spec, release, run_uri, open_pool)
    if not report.complete or report.error:
        raise SystemExit(f"the run is not what was to be measured: {report.not_run} not run, {report.error} errors")
    watched = opened[0]
    rest, effort = time.monotonic() - watched.closed, watched.exertion.done(report.passed, run_uri)
    return Ran(report.planned, watched.start, watched.work, rest, watched.spent, effort)


def rows(out: str, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Columns of the run's results."""
    return pq.read_table(Path(out) / "throughput" / "report" / "results.parquet", columns=list(columns)).to_pydict()

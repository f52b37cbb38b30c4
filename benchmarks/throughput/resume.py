"""A large run that is finished, and one more model: time to the first dispatch, to the report, and the memory of both.

The finished run is made up: its parts and commits are written directly, nothing is asked.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Flag

import pyarrow.parquet as pq
from measure import apart, table, usage
from subject import Onlooker, echo, make_release, question

from trunchray.adapters import parts
from trunchray.adapters.lease import HeldLease
from trunchray.adapters.releases import open_release
from trunchray.adapters.runs import RunFolder
from trunchray.core.ledger import Dispatch
from trunchray.core.plan import Plan, Shard, make_plan
from trunchray.core.receipt import Counts, Receipt
from trunchray.core.run import RunSpec, extend
from trunchray.core.trial import Result, Step, Timing, Trace, Trial, Usage, Verdict
from trunchray.engine.aggregate import aggregate, publish
from trunchray.engine.local import LocalPool
from trunchray.engine.run import Run

WORDS = [hashlib.sha256(str(number).encode()).hexdigest()[: 3 + number % 8] for number in range(5_000)]
"""A vocabulary, so that answers compress about as text does."""


def write_shards(run_uri: str, numbers: Sequence[int]) -> int:
    """Write the shards with these places in the plan as if they had been run; how many bytes their parts take."""
    folder, plan = RunFolder(run_uri), _plan(run_uri)
    size = 0
    for number in numbers:
        shard = plan.shards[number]
        rows = [
            parts.row(result, release_digest=shard.release_digest, versions="{}") for result in _results(shard, plan)
        ]
        content = parts.encode(rows)
        size += len(content)
        counts = Counts(passed=len(rows), tokens=450 * len(rows))
        part = folder.add_part(shard.id, content, len(rows))
        folder.commit(Receipt(shard=shard.id, attempt=1, parts=(part,), keys_digest=shard.keys_digest(), counts=counts))
    return size


def _results(shard: Shard, plan: Plan) -> Iterator[Result]:
    chance, now = random.Random(shard.id), datetime.now(UTC)
    agent = shard.agent.digest
    for key, case_id in zip(shard.trial_keys(), shard.case_ids, strict=True):
        text = " ".join(chance.choices(WORDS, k=130))
        yield Result(
            trial=Trial(key=key, case_id=case_id, agent=shard.agent.name, attempt=shard.attempt),
            eval_id=plan.evals[case_id],
            agent_digest=agent,
            trace=Trace(
                output=text,
                steps=(Step(kind="model", name=shard.agent.model, input={"messages": 2}, output={"text": text}),),
                usage=Usage(input_tokens=250, output_tokens=200),
                model="echo",
                request_id=f"request-{key[:16]}",
            ),
            verdict=Verdict(passed=True, score=1),
            evaluator_digest=key,
            latency=Timing(model=chance.random(), total=chance.random()),
            started_at=now,
            ended_at=now,
            worker="worker-0",
        )


def _plan(run_uri: str, *, more: int = 0) -> Plan:
    """The stored run's plan, with `more` further models."""
    spec = _spec(run_uri)
    return make_plan(_extended(spec, more), open_release(spec.release).cases().index)


def _spec(run_uri: str) -> RunSpec:
    spec = RunFolder(run_uri).spec()
    assert spec
    return spec


def _extended(spec: RunSpec, more: int) -> RunSpec:
    added = tuple(echo(f"added-{number}", seed=1000 + number) for number in range(more))
    return extend(spec, spec.model_copy(update={"agents": added})) if more else spec


class _DispatchedError(Exception):
    """The first shard has reached a worker, which is all that was to be seen."""


class _Stopwatch(LocalPool):
    def submit(self, work: Dispatch) -> None:
        self.reached = time.monotonic()
        raise _DispatchedError


def first_dispatch(run_uri: str, more: int) -> tuple[float, float]:
    """Seconds until a shard of `more` added models is dispatched, as `trunchray run` gets there, and peak MB."""
    began = time.monotonic()
    spec = _spec(run_uri)
    release = open_release(spec.release)
    folder, index = RunFolder(run_uri), release.cases().index
    lease = HeldLease.take(folder.store, takeover=True)
    whole = _extended(spec, more)
    folder.freeze(whole)
    pools: list[_Stopwatch] = []

    def open_pool() -> _Stopwatch:
        pools.append(_Stopwatch(run_uri, release.uri))
        return pools[-1]

    names = [agent.name for agent in whole.agents]
    plan = make_plan(whole, index)
    run = Run(plan, folder, lease=lease, open_pool=open_pool, wanted=names, observer=Onlooker(), stop=Flag())
    with suppress(_DispatchedError):
        run()
    folder.freeze(spec)
    lease.release()
    return pools[0].reached - began, usage().driver_peak


def report(run_uri: str) -> tuple[float, float, int]:
    """Seconds to count the rows and store the report, peak MB, and the bytes of the results."""
    folder = RunFolder(run_uri)
    began = time.monotonic()
    result = publish(aggregate(_plan(run_uri), folder).report, folder)
    took = time.monotonic() - began
    assert result.complete, result.not_run
    return took, usage().driver_peak, (Path(folder.uri) / "report" / "results.parquet").stat().st_size


def read_all(run_uri: str) -> tuple[float, float]:
    """Seconds to hash and decode every part, one after the other, and peak MB: the least that a report can take."""
    began = time.monotonic()
    for path in Path(run_uri).glob("parts/*/*.parquet"):
        hashlib.sha256(path.read_bytes()).hexdigest()
        pq.read_table(path)
    return time.monotonic() - began, usage().driver_peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--cases", type=int, default=25_000)
    options = parser.parse_args()
    models, cases = options.models, options.cases
    with tempfile.TemporaryDirectory() as temporary:
        spec = question(make_release(f"{temporary}/releases", cases), [echo(f"m{n}", seed=n) for n in range(models)])
        runs = [f"{temporary}/finished", f"{temporary}/planned"]
        for run_uri in runs:
            RunFolder(run_uri).freeze(spec)
        began = time.monotonic()
        size = _fill(runs[0])
        print(f"made up {models * cases:,} rows in {time.monotonic() - began:.0f} s; parts of {size / 1e6:.0f} MB")
        read, read_peak = apart(read_all, runs[0])
        took, peak, written = apart(report, runs[0])
        shown: list[list[object]] = [
            ["hash and decode every part", read, 1.0, read_peak],
            [f"report ({written / 1e6:.0f} MB of results)", took, took / read, peak],
            ["first dispatch, one model added", *_twice(runs[0], 1)],
            ["first dispatch, nothing finished", *_twice(runs[1], 0)],
        ]
    table(f"{models} models × {cases:,} cases", ["", "seconds", "of reading", "peak MB"], shown)


def _fill(run_uri: str) -> int:
    shards = len(_plan(run_uri).shards)
    with ProcessPoolExecutor(2) as pool:
        return sum(pool.map(write_shards, [run_uri] * 2, [range(first, shards, 2) for first in (0, 1)]))


def _twice(run_uri: str, more: int) -> list[object]:
    """The quicker of two, since the first also warms the disk's cache."""
    took, peak = min(apart(first_dispatch, run_uri, more) for _ in range(2))
    return [took, None, peak]


if __name__ == "__main__":
    main()

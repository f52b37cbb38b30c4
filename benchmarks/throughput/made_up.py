"""Workers that ask nobody: the rows of a shard are made up and stored at once, so that only the driver is measured."""

from __future__ import annotations

import hashlib
import queue
import random
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context

from trunchray.adapters import parts
from trunchray.adapters.releases import open_release
from trunchray.adapters.runs import RunFolder
from trunchray.core.ledger import Dispatch, Finished, Lost
from trunchray.core.plan import Plan, Shard, make_plan
from trunchray.core.receipt import Counts, InHand, Receipt
from trunchray.core.run import RunSpec
from trunchray.core.trial import Result, Step, Timing, Trace, Trial, Usage, Verdict
from trunchray.engine.governor import Standing
from trunchray.engine.progress import NodeStanding

WORDS = [hashlib.sha256(str(number).encode()).hexdigest()[: 3 + number % 8] for number in range(5_000)]
"""A vocabulary, so that answers compress about as text does."""
PASSES = 0.7
"""The share of trials whose answer is right."""


class MadeUpPool:
    """Two processes that make up rows; the driver does with them all that it does with real ones."""

    workers = 2

    def __init__(self, run_uri: str) -> None:
        self._processes = ProcessPoolExecutor(
            self.workers, get_context("spawn"), initializer=_open, initargs=(run_uri,)
        )
        self._events: queue.Queue[Finished[Receipt] | Lost] = queue.Queue()
        self._out: set[str] = set()

    def submit(self, work: Dispatch) -> None:
        def ended(future: Future[Receipt]) -> None:
            if not future.cancelled():
                self._events.put(Finished(work.shard, work.attempt, future.result(), 0))

        self._out.add(work.shard)
        self._processes.submit(_make_up, work.shard, work.attempt).add_done_callback(ended)

    def next_event(self, timeout: float) -> Finished[Receipt] | Lost | None:
        try:
            event = self._events.get(timeout=timeout)
        except queue.Empty:
            return None
        self._out.discard(event.shard)
        return event

    def progress(self) -> dict[str, InHand]:
        return {shard: InHand(Counts(passed=1), 1) for shard in self._out}

    def standing(self) -> dict[str, Standing]:
        return {}

    def nodes(self) -> tuple[NodeStanding, ...]:
        return ()

    def stop(self, grace: float) -> None:
        """Nothing: there is always a next event soon."""

    def close(self) -> None:
        self._processes.shutdown(cancel_futures=True)


_run: tuple[RunFolder, Plan, dict[str, Shard]] | None = None


def _open(run_uri: str) -> None:
    global _run  # noqa: PLW0603 - how a pool's processes keep something
    spec = stored_spec(run_uri)
    plan = make_plan(spec, open_release(spec.release).cases().index)
    _run = RunFolder(run_uri), plan, {shard.id: shard for shard in plan.shards}


def stored_spec(run_uri: str) -> RunSpec:
    """The question of a run that is there."""
    spec = RunFolder(run_uri).spec()
    assert spec
    return spec


def _make_up(shard_id: str, attempt: int) -> Receipt:
    assert _run
    folder, plan, shards = _run
    shard = shards[shard_id]
    results = list(_results(shard, plan))
    rows = [parts.row(result, release_digest=shard.release_digest, versions="{}") for result in results]
    passed = sum(result.outcome == "passed" for result in results)
    return Receipt(
        shard=shard.id,
        attempt=attempt,
        parts=(folder.add_part(shard.id, parts.encode(rows), len(rows)),),
        keys_digest=shard.keys_digest(),
        plan_digest=shard.keys_digest(),
        counts=Counts(passed=passed, failed=len(rows) - passed, tokens=450 * len(rows)),
    )


def _results(shard: Shard, plan: Plan) -> Iterator[Result]:
    chance, now = random.Random(shard.id), datetime.now(UTC)
    for key, case_id in zip(shard.trial_keys(), shard.case_ids, strict=True):
        text = " ".join(chance.choices(WORDS, k=130))
        passed = chance.random() < PASSES
        yield Result(
            trial=Trial(key=key, case_id=case_id, agent=shard.agent.name, attempt=shard.attempt),
            eval_id=plan.evals[case_id],
            agent_digest=shard.agent_digest,
            trace=Trace(
                output=text,
                steps=(Step(kind="model", name=shard.agent.model, input={"messages": 2}, output={"text": text}),),
                usage=Usage(input_tokens=250, output_tokens=200),
                model="echo",
                request_id=f"request-{key[:16]}",
            ),
            verdict=Verdict(passed=passed, score=float(passed)),
            evaluator_digest=key,
            latency=Timing(model=chance.random(), total=chance.random()),
            started_at=now,
            ended_at=now,
            worker="worker-0",
        )

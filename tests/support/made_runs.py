"""Finished runs whose outcomes are made up: nothing is asked, rows and commits are written as workers would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from trunchray.adapters import parts
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.core.plan import make_plan
from trunchray.core.receipt import Counts, Receipt
from trunchray.core.run import RunSpec, Selection
from trunchray.core.trial import Failure, Result, Timing, Trace, Trial, Usage, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = Trace(output="x", usage=Usage(input_tokens=10, output_tokens=5), cost_usd=0.01)

Outcomes = Mapping[str, Sequence[str]]
"""By model, one text for each case c0, c1, …: a letter for each attempt, `p`assed, `f`ailed, `e`rror or `-` not run."""


def make_run(
    folder: Path | str,
    release: StoredRelease,
    outcomes: Outcomes,
    *,
    scores: Mapping[str, float] | None = None,
    selection: Selection | None = None,
    run_id: str | None = None,
    change: Callable[[Result], Result] = lambda result: result,
) -> str:
    """Store a run; its URI. `scores` gives the score of a letter where it is not 1 for a pass and 0 for a fail.

    `change` makes of each result the one that is stored.
    """
    agents = tuple(
        ModelAgent(name=name, model="mock/echo", params={"seed": seed}) for seed, name in enumerate(outcomes)
    )
    spec = RunSpec(
        run_id=run_id or Path(folder).name,
        title=release.release.title,
        release=release.uri,
        release_digest=release.release.digest,
        agents=agents,
        attempts=max(len(letters) for each in outcomes.values() for letters in each),
        selection=selection or Selection(),
        shard_size=1,
    )
    stored = RunFolder(str(folder))
    stored.freeze(spec)
    plan = make_plan(spec, release.cases().index)
    for shard in plan.shards:
        (trial,) = shard.trials()
        letters = outcomes[trial.agent][int(trial.case_id[1:])]
        letter = letters[trial.attempt - 1] if trial.attempt <= len(letters) else "-"
        if letter == "-":
            continue
        result = change(_result(trial, letter, plan.evals[trial.case_id], shard.agent.digest, scores or {}))
        row = parts.row(result, release_digest=spec.release_digest, versions="{}")
        part = stored.add_part(shard.id, parts.encode([row]), 1)
        counts = Counts(**{result.outcome: 1})
        stored.commit(Receipt(shard=shard.id, attempt=1, parts=(part,), keys_digest=shard.keys_digest(), counts=counts))
    return stored.uri


def _result(trial: Trial, letter: str, eval_id: str, agent: str, scores: Mapping[str, float]) -> Result:
    failure = Failure(boundary="provider", type="timeout", message="no answer", retryable=True)
    verdict = Verdict(passed=letter == "p", score=scores.get(letter, float(letter == "p")))
    return Result(
        trial=trial,
        eval_id=eval_id,
        agent_digest=agent,
        trace=None if letter == "e" else TRACE,
        verdict=None if letter == "e" else verdict,
        failure=failure if letter == "e" else None,
        latency=Timing(model=0.4, tools=0.1, evaluator=2, total=2.5),
        started_at=NOW,
        ended_at=NOW,
    )

"""What a run found, as data: `summary.json`. A pure function of the plan and of the set of counted rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Self

from trunchray.core.agent import AgentSpec, ModelAgent
from trunchray.core.contrast import ModelPair
from trunchray.core.disagreement import Disagreements
from trunchray.core.frozen import Frozen
from trunchray.core.plan import Plan
from trunchray.core.trial import GRADING_ERROR, NOT_GRADED, Outcome

IntervalMethod = Literal["wilson", "normal", "normal-clustered"]


@dataclass(frozen=True, slots=True)
class CountedRow:
    """One counted result row, as far as reports need it."""

    agent: str
    eval_id: str
    case_id: str
    attempt: int
    outcome: Outcome
    score: float | None
    """From 0 to 1; None for an error."""
    usage: tuple[int | None, int | None, int | None, int | None]
    """Input, output, cached and reasoning tokens; None where the provider did not say."""
    cost_usd: float | None
    """None when the price is unknown, or the trial failed before anything was paid for."""
    latency: float
    """Seconds that the model and its tools took, without waits, grading and our own work."""
    finish_reason: str | None
    tool_calls: int
    failure: tuple[str, str, str] | None
    """Boundary, type and message."""
    cache_hits: int = 0
    """Model calls that the cache answered."""
    saved_tokens: int = 0
    """Tokens of `usage` that the cache saved."""
    earlier_errors: int = 0
    """Rows of the same trial before that ended in an error."""


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """How many trials one model owes, by eval."""

    name: str
    agent_digest: str
    model: str
    trials: Mapping[str, int]
    priced: bool | None = False
    """Whether its price is known: then a row without a cost is one whose tokens nobody counted. None: it has none."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a report measures rows against. Models and evals are reported in this order."""

    run: str
    release_digest: str
    title: str
    attempts: int
    models: tuple[PlannedModel, ...]
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """What an eval's cases were made from, where a transformer made them: evals of one source are one cluster."""

    @classmethod
    def of(cls, plan: Plan) -> Self:
        spec = plan.spec
        trials = {eval_id: cases * spec.attempts for eval_id, cases in Counter(plan.evals.values()).items()}
        models = tuple(PlannedModel(one.name, one.digest, one.model, trials, _priced(one)) for one in spec.agents)
        return cls(spec.run_id, spec.release_digest, spec.title, spec.attempts, models, plan.sources)


def _priced(agent: AgentSpec) -> bool | None:
    """As in `PlannedModel`."""
    return agent.price is not None if isinstance(agent, ModelAgent) else None


class Tokens(Frozen):
    """Tokens over all counted rows that say; None when no row does."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


class Latency(Frozen):
    """Seconds that model and tools took in a counted trial: median and 95th percentile of the raw values."""

    p50: float
    p95: float


class Bounds(Frozen):
    """The pass rate, had every error been a fail, or a pass."""

    errors_failed: float
    errors_passed: float


class ErrorKind(Frozen):
    """Errors of one kind, `<boundary>/<type>`, with the message that sorts first among them."""

    kind: str
    count: int
    example: str

    @property
    def of_grading(self) -> bool:
        """An evaluator of the release failed on whole answers; a grader of attempts is asked again by a retry."""
        boundary, _, type_ = self.kind.partition("/")
        return boundary == "evaluator" and type_ not in {NOT_GRADED, GRADING_ERROR}


class Figures(Frozen):
    """What is reported alike for a model and for one of its evals."""

    planned: int
    passed: int
    failed: int
    error: int
    not_run: int
    """Planned trials without a counted row."""
    coverage: float
    """Graded trials (passed or failed) as a share of the planned ones."""
    pass_rate: float | None
    """Of graded trials; None when nothing was graded. So are the figures around it."""
    pass_rate_low: float | None
    """With `pass_rate_high`, the 95 % interval."""
    pass_rate_high: float | None
    interval: IntervalMethod | None
    """`wilson` below 300 graded cases, or when all agree; else `normal`, clustered by eval when there are several."""
    none_failed_below: float | None
    """When every graded case passed: what the rate of failures is below, by the rule of three, 95 % sure. Else None."""
    none_passed_below: float | None
    """When none did: what the pass rate is below, likewise."""
    mean_score: float | None
    mean_score_se: float | None
    """Its standard error; None below two graded cases."""
    bounds: Bounds | None
    """None when there are no rows."""
    pass_at_k: dict[str, float]
    """By k, over cases with at least k graded attempts; empty when each case is attempted once."""
    pass_hat_k: dict[str, float]
    """pass^k, likewise."""
    usage: Tokens
    cost_usd: float | None
    """None when the cost of a row that used the model is unknown, and when no row used it."""
    unpriced: int = 0
    """Rows that used the model, whose price is unknown and could be given."""
    uncounted: int = 0
    """Rows that used the model, whose price is known, and yet their cost is not: their tokens were not counted, or the
    price was not known then."""
    least_usd: float | None = None
    """What the rows cost whose cost is known, where there are `uncounted` ones; else None."""
    latency: Latency | None
    """None when there are no rows."""
    finish_reasons: dict[str, int]
    tool_calls: int
    cache_hits: int = 0
    """Model calls that the cache answered: in `usage` as if they had been made, at no cost."""
    saved_tokens: int = 0
    """Input and output tokens of `usage` that the cache saved."""
    retried: int = 0
    """Counted rows of trials that had ended in an error before."""
    errors: tuple[ErrorKind, ...]
    """Most frequent first."""


# Stored in the order of the bases from the last to the first: names, then figures, then evals.
class _EvalName(Frozen):
    eval_id: str


class EvalReport(Figures, _EvalName):
    """One eval under one model."""


class _ModelName(Frozen):
    name: str
    agent_digest: str
    model: str
    not_run_reason: str | None
    """Why trials have no row; None when all have one."""


class _Evals(Frozen):
    evals: tuple[EvalReport, ...]


class ModelReport(_Evals, Figures, _ModelName):
    """One model over all its evals."""


class Report(Frozen):
    """A whole run. `complete` means that every planned trial has a counted row."""

    format: Literal[1] = 1
    run: str
    release_digest: str
    title: str
    attempts: int
    complete: bool
    started_at: datetime | None = None
    """When the first counted trial began, UTC; None when no trial is counted, or nobody asked."""
    ended_at: datetime | None = None
    """When the last one ended."""
    planned: int
    passed: int
    failed: int
    error: int
    not_run: int
    notes: tuple[str, ...] = ()
    """What to bear in mind when reading the intervals."""
    models: tuple[ModelReport, ...]
    comparisons: tuple[ModelPair, ...] = ()
    """Every two models, the later one against the earlier one, in the order of `models`."""
    disagreements: Disagreements = Disagreements()
    """The cases on which the models differ."""

    def to_json(self) -> bytes:
        """The content of `summary.json`: the same bytes for the same counted rows."""
        return (json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n").encode()

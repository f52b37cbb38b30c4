"""Which thresholds a judge should have: a labelled sample, run and judged once, swept over every threshold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from trunchray.adapters.calling import let_go
from trunchray.adapters.loops import own_loop, refuse_running_loop
from trunchray.agents.python.agent import PythonTaskAgent
from trunchray.agents.python.task import as_task
from trunchray.core.calibration import CheckCalibration, Sample, Trouble, calibrated
from trunchray.core.calibration_markdown import calibration_markdown
from trunchray.core.decisions import Decision
from trunchray.core.frozen import Frozen
from trunchray.core.record import Returned, RunRecord
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import checked_judge
from trunchray.evaluators.judges.base import Judge
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.judging import decisions_about, state_of
from trunchray.evaluators.python.scorer import as_scorers
from trunchray.frontends.evaluation.labelled_cases import LabelledCase, read_labelled_cases
from trunchray.frontends.evaluation.spec import MAX_CONCURRENCY, count, seconds
from trunchray.frontends.evaluation.watching import show

Cases = Iterable[Mapping[str, object]]


class Calibration(Frozen):
    """What came of calibrating: every check of the sample, in the order in which they were given."""

    name: str
    checks: tuple[CheckCalibration, ...]

    @property
    def recommended(self) -> dict[str, dict[str, float]]:
        """By check with samples, what to paste into it or into the judge: `{yes, no}` or `{sure}`."""
        return {check.check: check.recommended for check in self.checks if check.recommended is not None}

    def markdown(self) -> str:
        """A section and a table for each check."""
        return calibration_markdown(self.name, self.checks)

    def to_json(self) -> list[JsonValue]:
        """For each check `{check, kind, rows: [{yes, no | sure, agree, unsure, disagree}], recommended, n, errors}`."""
        return [check.to_json() for check in self.checks]


def calibrate(
    name: str,
    *,
    run: object,
    cases: Cases,
    checks: Mapping[str, object],
    judge: object,
    concurrency: int = 4,
    timeout: str | float = "60s",
    quiet: bool = False,
) -> Calibration:
    """Run a labelled sample once, judge it, and count how every threshold would have done; prints the table.

    `run` is whatever can be the task of an evaluation. `cases` are `{input, expectedOutput?, labels, name?}`, where
    `labels` maps checks to what is right: True or False, whether the check should pass; or, for one made by `ask`, the
    name of the right answer. A case without a label for a check is not judged by it. `checks` are sentences,
    `{question, yes, no}` and what `ask` makes; thresholds of their own are ignored. `judge` is as in `evaluate`, but
    does not escalate what it is unsure about.

    A check that is answered by yes and no is tried with `yes` from 0.50 to 0.95 in steps of 0.05, and `no` = 1 - `yes`;
    others with `sure` from 0.30 to 0.95. At each, decisions either agree with the label, are unsure, or disagree with
    confidence. Recommended is the threshold with the fewest confident disagreements; of several the one that agrees
    most often, then the lowest. Failed runs, and replies that cannot be read, are listed as errors and not counted.

    At most `concurrency` cases are under way. `timeout` bounds each run and each request to the judge: "60s", "500ms",
    or a number of milliseconds. Nothing is stored. In a running event loop, await `acalibrate`.

    Raises:
        UsageError: a check is not a question, a case or label is not valid, or there is no judge; nothing was run.
    """
    refuse_running_loop("calibrate")
    job = _job(name, run, cases, checks, judge, concurrency=concurrency, timeout=timeout)
    with own_loop() as runner:
        return _told(runner.run(job.calibrate()), quiet=quiet)


async def acalibrate(
    name: str,
    *,
    run: object,
    cases: Cases,
    checks: Mapping[str, object],
    judge: object,
    concurrency: int = 4,
    timeout: str | float = "60s",  # noqa: ASYNC109 - of each run, not of this
    quiet: bool = False,
) -> Calibration:
    """`calibrate` for running event loops."""
    job = _job(name, run, cases, checks, judge, concurrency=concurrency, timeout=timeout)
    return _told(await job.calibrate(), quiet=quiet)


def _told(found: Calibration, *, quiet: bool) -> Calibration:
    if not quiet:
        show(found.markdown())
    return found


def _job(
    name: str,
    run: object,
    cases: Cases,
    checks: Mapping[str, object],
    judge: object,
    *,
    concurrency: int,
    timeout: str | float,
) -> _Job:
    scorers, limit = _questions(checks), seconds(timeout)
    asked = cast("Judge", checked_judge(judge, list(scorers)))  # questions do not go without one
    agent = PythonTaskAgent(as_task(run), timeout=limit)
    turns = count("concurrency", concurrency, MAX_CONCURRENCY)
    return _Job(name, agent, scorers, read_labelled_cases(cases, scorers), asked, turns, limit)


def _questions(checks: Mapping[str, object]) -> dict[str, JudgeScorer]:
    if not checks:
        raise UsageError("checks: no checks; give at least one question")
    scorers = as_scorers(checks)
    found = {name: scorer for name, scorer in scorers.items() if isinstance(scorer, JudgeScorer)}
    if others := [name for name in scorers if name not in found]:
        raise UsageError(f"checks: {others[0]!r} is code; only sentences and ask(…) have thresholds to calibrate")
    return found


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of one case: a decision on each of its labels, or why there is none."""

    case: LabelledCase
    decisions: Mapping[str, Decision]
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    agent: PythonTaskAgent
    scorers: Mapping[str, JudgeScorer]
    cases: tuple[LabelledCase, ...]
    judge: Judge
    concurrency: int
    timeout: float

    async def calibrate(self) -> Calibration:
        turns = asyncio.Semaphore(self.concurrency)

        async def outcome(case: LabelledCase) -> _Outcome:
            async with turns:
                return await self._outcome(case)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(outcome(case)) for case in self.cases if case.labels]
        finally:
            await self.agent.close()
            await let_go(self.judge.close)
        outcomes = [task.result() for task in tasks]
        return Calibration(name=self.name, checks=tuple(self._check(check, outcomes) for check in self.scorers))

    async def _outcome(self, case: LabelledCase) -> _Outcome:
        trace = await self.agent.run(case.case_input, case_id=case.name, attempt=1)
        returned = cast("Returned", trace.returned)  # which every run of a task has
        if returned.error is not None:
            return _Outcome(case, {}, f"run failed: {returned.error}")
        try:
            return _Outcome(case, await self._decisions(case, returned))
        except ValueError as e:
            return _Outcome(case, {}, f"judge: {e}")

    async def _decisions(self, case: LabelledCase, returned: Returned) -> dict[str, Decision]:
        record = RunRecord.of(case.input, returned, case.expected)
        questions = [self.scorers[check].question(check) for check in self.scorers if check in case.labels]
        return await decisions_about(self.judge, state_of(record), questions, self.timeout)

    def _check(self, check: str, outcomes: Iterable[_Outcome]) -> CheckCalibration:
        mine = [each for each in outcomes if check in each.case.labels]
        samples = [
            Sample(each.case.name, each.case.labels[check], each.decisions[check])
            for each in mine
            if each.trouble is None
        ]
        errors = [Trouble(case=each.case.name, reason=each.trouble) for each in mine if each.trouble is not None]
        return calibrated(check, self.scorers[check].rule, samples, errors)

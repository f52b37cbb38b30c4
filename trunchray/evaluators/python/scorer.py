"""The checks of an evaluation: code that is given the run, or a question that a judge answers about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trunchray.adapters.source_code import code_digest
from trunchray.core.decisions import Thresholds
from trunchray.core.digest import digest
from trunchray.core.names import is_name
from trunchray.core.record import RunRecord
from trunchray.errors import UsageError
from trunchray.evaluators.python.asking import Ask, ask, read_sentence, read_yes_no
from trunchray.evaluators.python.comparing import includes, matches
from trunchray.evaluators.python.helper import Helper, call_problem
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.schema import fits_schema
from trunchray.evaluators.python.showing import shown
from trunchray.evaluators.python.trajectory import ran_steps, steps_at_most, under
from trunchray.evaluators.python.words import avoids, mentions


@dataclass(frozen=True, slots=True)
class CodeScorer:
    """A function, async or not, whose return value `read_result` reads."""

    check: Callable[[RunRecord], Any]
    digest: str
    """64 hex digits of the code and values that decide it, computed in the process that defines it."""


Scorer = CodeScorer | JudgeScorer

HELPERS = (matches, includes, fits_schema, mentions, avoids, ran_steps, steps_at_most, under, ask)


def as_scorers(scorers: Mapping[str, object] | None) -> dict[str, Scorer]:
    """The checks by their names; without any, `matches` alone, which compares the output with `expectedOutput`.

    A check is a function of the run, async or not; a sentence, which is a yes/no question for the judge; a mapping
    `{question, yes, no}`, which is one with its own thresholds; or what a helper or `ask` returned.

    Raises:
        UsageError: the mapping is empty, or a check is not one of these; the message names it.
    """
    if scorers is None:
        scorers = {"matches": matches()}
    if not isinstance(scorers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - people write all sorts
        raise UsageError(f"scorers must be a mapping of names to checks (got {shown(scorers)})")
    if not scorers:
        raise UsageError("scorers is empty; leave it out to compare each output with its expectedOutput")
    return {name: _scorer(name, check) for name, check in scorers.items()}


def needs_judge(scorers: Mapping[str, Scorer]) -> list[str]:
    """The names of the checks that a judge decides."""
    return [name for name, scorer in scorers.items() if isinstance(scorer, JudgeScorer)]


def check_thresholds(scorers: Mapping[str, Scorer], usual: Thresholds) -> None:
    """Check the thresholds of each check together with the judge's `usual` ones.

    Raises:
        UsageError: with a check's own thresholds, its `no` is above its `yes`; the message names it.
    """
    for name, scorer in scorers.items():
        if isinstance(scorer, JudgeScorer):
            try:
                scorer.rule.in_force(usual)
            except UsageError as e:
                raise UsageError(f"scorer {name!r}: {e}; one of the two is the judge's, give both") from e


def _scorer(name: object, check: object) -> Scorer:
    if not is_name(name):
        raise UsageError(f"the name of a scorer must be a string, and not empty (got {name!r})")
    try:
        return _read(check)
    except ValueError as e:
        raise UsageError(f"scorer {name!r}: {e}") from e


def _read(check: object) -> Scorer:
    """Raises ValueError for what is not a check."""
    match check:
        case CodeScorer() | JudgeScorer():
            return check
        case str():
            return read_sentence(check)
        case Mapping():
            return read_yes_no(check)
        case Ask():
            return check.read()
        case Helper():
            if problem := check.problem():
                raise ValueError(problem)
            return CodeScorer(check, digest(check.identity))
        case _:
            return _code(check)


def _code(check: object) -> CodeScorer:
    if any(check is helper for helper in HELPERS):
        name = getattr(check, "__name__", "")
        raise ValueError(f"{name} makes a check when it is called; write {name}(…)")
    if not callable(check):
        wanted = "a function of the run, a yes/no question, or what a helper such as mentions([…]) makes"
        raise ValueError(f"a check is {wanted} (got {shown(check)})")
    if problem := call_problem("a check", check):
        raise ValueError(problem)
    return CodeScorer(check, code_digest(check))

"""What a program asks of an evaluation, read and checked before anything runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from pydantic import JsonValue

from trunchray.agents.python.task import Task, as_task
from trunchray.core.allowance import Allowance, allowances
from trunchray.core.decisions import Thresholds
from trunchray.core.digest import canonical
from trunchray.core.experiment import Experiment
from trunchray.core.names import is_name
from trunchray.core.plain import stable
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import checked_judge
from trunchray.evaluators.judges.base import Judge
from trunchray.evaluators.python.scorer import Scorer, as_scorers, check_thresholds, needs_judge
from trunchray.frontends.evaluation.dataset import Data, DataCase, read_dataset
from trunchray.frontends.evaluation.experiment_file import Comparable, read_experiment, save_place

MAX_REPEATS, MAX_CONCURRENCY = 1_000, 100_000

LONGEST = 1e15
"""Milliseconds; longer ones are no limits."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Spec:
    """An evaluation that can be run. Times are in seconds."""

    name: str
    task: Task
    source: str
    cases: list[DataCase]
    scorers: Mapping[str, Scorer]
    allow: Mapping[str, Allowance]
    compare: Experiment | None
    save: str | None
    about: dict[str, JsonValue] | None
    judge: Judge | None
    repeats: int
    concurrency: int
    timeout: float


def read_spec(
    *,
    name: str,
    task: object,
    data: Data,
    scorers: Mapping[str, object] | None,
    allow: Mapping[str, object] | None,
    compare: Comparable | None,
    save: str | PathLike[str] | None,
    about: Mapping[str, object] | None,
    repeats: int,
    concurrency: int,
    timeout: str | float,
    judge: object,
) -> Spec:
    """Everything that can be found wrong is found here.

    Raises:
        UsageError: the evaluation cannot be run as asked.
    """
    if not is_name(name):
        raise UsageError(f"name: expected a text, got {name!r}")
    place = None if save is None else save_place(save)
    found = as_scorers(scorers)
    decides = checked_judge(judge, needs_judge(found))
    check_thresholds(found, decides.thresholds if decides else Thresholds())
    source, cases = read_dataset(data, found)
    return Spec(
        name=name,
        task=as_task(task),
        source=source,
        cases=cases,
        scorers=found,
        allow=allowances(allow, found),
        compare=read_experiment(compare, name=name),
        save=place,
        about=_about(about),
        judge=decides,
        repeats=count("repeats", repeats, MAX_REPEATS),
        concurrency=count("concurrency", concurrency, MAX_CONCURRENCY),
        timeout=seconds(timeout),
    )


def seconds(timeout: str | float) -> float:
    """A duration: "500ms", "60s", "2m" or a number of milliseconds.

    Raises:
        UsageError: it is not a duration above zero.
    """
    found = math.nan
    if isinstance(timeout, str):
        if match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*", timeout):
            found = float(match[1]) * _UNITS[match[2]]
    elif isinstance(timeout, int | float) and not isinstance(timeout, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = timeout / 1000 if timeout < LONGEST else math.inf
    if not 0 < found < math.inf:
        raise UsageError(f"timeout: expected a time such as '60s', '500ms' or '2m', or milliseconds, got {timeout!r}")
    return found


def _about(about: Mapping[str, object] | None) -> dict[str, JsonValue] | None:
    if about is None:
        return None
    try:
        found: Any = stable(about)
        canonical(found)  # it is part of what tells one evaluation from another
    except ValueError as e:
        raise UsageError(f"about: {e}") from e
    if not isinstance(found, dict):
        raise UsageError(f"about: expected a mapping, got {type(about).__name__}")
    return found


def count(what: str, value: object, most: int) -> int:
    """The value, if it is a whole number from 1 to `most`; `what` names it in the message.

    Raises:
        UsageError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(f"{what}: expected a whole number from 1 to {most:,}, got {value!r}")
    return value

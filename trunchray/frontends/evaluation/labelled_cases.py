"""Cases that are labelled with what checks should find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trunchray.core.calibration import Label
from trunchray.core.excerpt import excerpt
from trunchray.core.names import nearest
from trunchray.errors import UsageError
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.frontends.evaluation.given import GivenCase, checked_row


class LabelledCase(GivenCase):
    """One case with its labels, by check; checks without one do not concern it."""

    labels: dict[str, Label]


def read_labelled_cases(
    given: Iterable[Mapping[str, object]], checks: Mapping[str, JudgeScorer]
) -> tuple[LabelledCase, ...]:
    """The cases in order; `checks` are those that can be labelled.

    Raises:
        UsageError: there are no cases, or one of them, or a label, is not valid.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are people's scripts
        raise UsageError(f"cases: expected a list of cases, got {type(given).__name__}")
    found = tuple(_case(f"cases[{place}]", row, checks) for place, row in enumerate(given))
    if not found:
        raise UsageError("cases: there is no case; give at least one {'input': …, 'labels': {…}}")
    return found


def _case(place: str, row: object, checks: Mapping[str, JudgeScorer]) -> LabelledCase:
    row = checked_row(place, row, also=("labels",), needs=("input", "labels"))
    return LabelledCase.of(place, row, labels=_labels(f"{place}: labels", row["labels"], checks))


def _labels(place: str, given: object, checks: Mapping[str, JudgeScorer]) -> dict[str, Label]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{place}: expected a mapping of checks to labels, got {excerpt(repr(given), 60)}")
    return {check: _label(f"{place}: {check!r}", check, label, checks) for check, label in given.items()}


def _label(place: str, check: object, label: object, checks: Mapping[str, JudgeScorer]) -> Label:
    if not isinstance(check, str) or check not in checks:
        raise UsageError(f"{place}: there is no such check{nearest(str(check), checks)}")
    if isinstance(label, bool):
        return label
    rule = checks[check].rule
    if rule.type != "boolean" and isinstance(label, str) and label in rule.answers:
        return label
    names = "" if rule.type == "boolean" else f", or one of {excerpt(', '.join(map(repr, rule.answers)), 120)}"
    raise UsageError(f"{place}: expected True or False{names}, got {excerpt(repr(label), 60)}")

"""Cases of which somebody knows what each check should make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from trunchray.core.calibration import Label
from trunchray.core.digest import canonical
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.core.plain import plain
from trunchray.errors import UsageError
from trunchray.evaluators.python.judge_scorer import JudgeScorer

_KEYS = ("name", "input", "expectedOutput", "labels", "meta")


class LabelledCase(Frozen):
    """One case with its labels, by check; checks without one do not concern it."""

    name: str
    input: JsonValue
    expected: tuple[JsonValue, ...] = ()
    """The `expectedOutput`, which may be null; empty where there is none."""
    labels: dict[str, Label]


def read_labelled_cases(
    given: Iterable[Mapping[str, object]], checks: Mapping[str, JudgeScorer]
) -> tuple[LabelledCase, ...]:
    """The cases in order; `checks` are those that can be labelled.

    Raises:
        UsageError: there is none, or one of them is no case, or has no labels or wrong ones.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are people's scripts
        raise UsageError(f"cases: expected a list of cases, got {type(given).__name__}")
    found = tuple(_case(f"cases[{place}]", row, checks) for place, row in enumerate(given))
    if not found:
        raise UsageError("cases: there is no case; give at least one {'input': …, 'labels': {…}}")
    return found


def _case(place: str, row: object, checks: Mapping[str, JudgeScorer]) -> LabelledCase:
    if not isinstance(row, Mapping):
        raise UsageError(f"{place}: a case is an object with an 'input' and 'labels', not {type(row).__name__}")
    for key in row:
        if key not in _KEYS:
            raise UsageError(
                f"{place}: unknown key {key!r}{nearest(str(key), _KEYS)}; put what else there is in 'meta'"
            )
    for key in ("input", "labels"):
        if key not in row:
            raise UsageError(f"{place}: a case needs {key!r}")
    value = _json(f"{place}: input", row["input"])
    name = row.get("name")
    if name is not None and not (isinstance(name, str) and name):
        raise UsageError(f"{place}: name: expected a text, got {excerpt(repr(name), 60)}")
    return LabelledCase(
        name=name or (value if isinstance(value, str) else canonical(value).decode()),
        input=value,
        expected=(_json(f"{place}: expectedOutput", row["expectedOutput"]),) if "expectedOutput" in row else (),
        labels=_labels(f"{place}: labels", row["labels"], checks),
    )


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


def _json(place: str, value: object) -> JsonValue:
    try:
        found = plain(value)
        canonical(found)
    except ValueError as e:
        raise UsageError(f"{place}: {e}") from e
    return found

"""Questions for a judge, as people write them: a sentence, `{question, yes, no}`, or `ask` with its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trunchray.core.decisions import FEWEST_LEVELS, MOST_LEVELS, MOST_OPTIONS
from trunchray.core.names import is_name, nearest
from trunchray.core.rule import Rule, yes_no
from trunchray.core.share import is_share
from trunchray.evaluators.python.judge_scorer import JudgeScorer

_FORM = {"options": "options", "levels": "levels", "pass": "pass", "passAt": "pass_at", "sure": "sure"}
_KNOWN = _FORM | {"pass_": "pass", "pass_at": "pass_at"}

Options = Sequence[str] | Mapping[str, object]


def ask(
    question: str,
    form: Mapping[str, object] | None = None,
    /,
    *,
    options: Options | None = None,
    levels: Options | None = None,
    pass_: str | Sequence[str] | None = None,
    pass_at: float | None = None,
    sure: float | None = None,
) -> Ask:
    """A question that a judge answers by picking one of several answers.

    It passes

    - with `options` and `pass_`: when the option picked is one of those; the value is 1 or 0
    - with `options` and `pass_at`: when the credit of the option picked is at least that; the value is that credit
    - with `levels`, lowest first, and `pass_`: when the level picked is that one or above; the value goes from 0 to 1

    Options are names (1 to 255), or a mapping of names to descriptions; with `pass_at` to credits, or to
    `{credit, description}`. Levels are 2 to 10 names, or a mapping of names to descriptions. Where the likeliest answer
    is less likely than `sure` (if not given, the judge's, which is 0.6 by default), the check fails as unsure. All this
    may also be given as one mapping, with the keys `options`, `levels`, `pass`, `passAt` and `sure`.
    """
    named = {"options": options, "levels": levels, "pass": pass_, "pass_at": pass_at, "sure": sure}
    return Ask(question, form, {name: value for name, value in named.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Ask:
    """What was given to `ask`, unread."""

    question: Any
    form: Any
    named: Mapping[str, Any]

    def read(self) -> JudgeScorer:
        """The check that it stands for.

        Raises:
            ValueError: it is not a valid question; the message says what would be.
        """
        given = _form(self.form, self.named)
        if ("options" in given) == ("levels" in given):
            raise ValueError("ask() takes either options or levels")
        thresholds = {"sure": _share("sure", given["sure"])} if "sure" in given else {}
        return JudgeScorer(_question(self.question), _rule(given, thresholds))


def read_sentence(question: str) -> JudgeScorer:
    """A yes/no question with the judge's thresholds.

    Raises:
        ValueError: it is empty.
    """
    return JudgeScorer(_question(question), yes_no())


def read_yes_no(given: Mapping[Any, Any]) -> JudgeScorer:
    """`{question, yes?, no?}`: a yes/no question with its own thresholds.

    Raises:
        ValueError: it has another key, or a threshold is out of range.
    """
    for name in given:
        if name not in ("question", "yes", "no"):
            hint = (
                "; ask(...) has options and levels" if name in _KNOWN else nearest(str(name), ("question", "yes", "no"))
            )
            raise ValueError(f"a mapping asks yes or no, with the keys question, yes and no, and has no {name!r}{hint}")
    thresholds = {name: _share(name, given[name]) for name in ("yes", "no") if given.get(name) is not None}
    if thresholds.get("no", 0) > thresholds.get("yes", 1):
        raise ValueError(f"no ({thresholds['no']:g}) must not be above yes ({thresholds['yes']:g})")
    return JudgeScorer(_question(given.get("question")), yes_no(thresholds))


def _form(form: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, by the names of the keyword arguments, but `pass` for `pass_`."""
    if not isinstance(form, Mapping | None):
        raise ValueError(f"ask() takes options or levels by name, or a mapping with them (got {form!r})")
    found = dict(named)
    for key, value in (form or {}).items():
        if key not in _KNOWN:
            raise ValueError(f"ask() has no {key!r}{nearest(str(key), _FORM)}")
        if _KNOWN[key] in found:
            raise ValueError(f"ask() was given {key!r} twice")
        if value is not None:
            found[_KNOWN[key]] = value
    return found


def _rule(given: Mapping[str, Any], thresholds: Mapping[str, float]) -> Rule:
    if "levels" in given:
        return _levels(given, thresholds)
    if ("pass" in given) == ("pass_at" in given):
        raise ValueError("ask() with options takes either pass_ or pass_at")
    return _credits(given, thresholds) if "pass_at" in given else _options(given, thresholds)


def _options(given: Mapping[str, Any], thresholds: Mapping[str, float]) -> Rule:
    answers = _answers("option", given["options"], 1, MOST_OPTIONS)
    passing = [given["pass"]] if isinstance(given["pass"], str) else given["pass"]
    if not isinstance(passing, Sequence | set | frozenset) or not passing:
        raise ValueError(f"pass_ must be the name of an option, or a list of names (got {passing!r})")
    for name in passing:
        _check_known("option", name, answers)
    return Rule("choice", answers, {name: float(name in passing) for name in answers}, frozenset(passing), thresholds)


def _credits(given: Mapping[str, Any], thresholds: Mapping[str, float]) -> Rule:
    options, pass_at = given["options"], _share("pass_at", given["pass_at"])
    if not isinstance(options, Mapping):
        raise ValueError("with pass_at, options must be a mapping of names to credits from 0 to 1")
    split = {name: _split(name, value) for name, value in options.items()}
    answers = _answers("option", {name: meaning for name, (_, meaning) in split.items()}, 1, MOST_OPTIONS)
    worth = {name: credit for name, (credit, _) in split.items()}
    return Rule("choice", answers, worth, frozenset(name for name in worth if worth[name] >= pass_at), thresholds)


def _split(name: object, given: Any) -> tuple[float, Any]:
    """The credit of an option, and its description."""
    if not isinstance(given, Mapping):
        return _share(f"the credit of {name!r}", given), None
    if unknown := given.keys() - {"credit", "description"}:
        raise ValueError(f"option {name!r} has a credit and a description, and no {', '.join(map(repr, unknown))}")
    return _share(f"the credit of {name!r}", given.get("credit")), given.get("description")


def _levels(given: Mapping[str, Any], thresholds: Mapping[str, float]) -> Rule:
    answers = _answers("level", given["levels"], FEWEST_LEVELS, MOST_LEVELS)
    if "pass_at" in given:
        raise ValueError("ask() with levels takes pass_, the lowest level that passes; pass_at is for options")
    if not isinstance(given.get("pass"), str):
        raise ValueError(f"pass_ must be the name of the lowest level that passes (got {given.get('pass')!r})")
    _check_known("level", given["pass"], answers)
    names = list(answers)
    worth = {name: place / (len(names) - 1) for place, name in enumerate(names)}
    return Rule("score", answers, worth, frozenset(names[names.index(given["pass"]) :]), thresholds)


def _answers(kind: str, given: Any, fewest: int, most: int) -> dict[str, str | None]:
    if isinstance(given, str) or not isinstance(given, Sequence | Mapping):
        raise ValueError(f"{kind}s must be a list of names, or a mapping of names to descriptions (got {given!r})")
    found: dict[str, str | None] = {}
    for name in given:
        meaning = given[name] if isinstance(given, Mapping) else None
        if not is_name(name):
            raise ValueError(f"every {kind} has a name, which is not empty (got {name!r})")
        if name in found:
            raise ValueError(f"two {kind}s have the name {name!r}")
        if not isinstance(meaning, str | None):
            hint = "; credits need pass_at" if kind == "option" else ""
            raise ValueError(f"the description of {kind} {name!r} must be a string or None (got {meaning!r}){hint}")
        found[name] = meaning
    if not fewest <= len(found) <= most:
        raise ValueError(f"a question has {fewest} to {most} {kind}s, not {len(found)}")
    return found


def _check_known(kind: str, name: object, answers: Mapping[str, object]) -> None:
    if not isinstance(name, str) or name not in answers:
        raise ValueError(f"pass_ names no {kind}: {name!r}{nearest(str(name), answers)}")


def _question(question: object) -> str:
    if is_name(question):
        return question
    raise ValueError(f"a question must be a sentence, and not empty (got {question!r})")


def _share(name: str, value: object) -> float:
    if is_share(value):
        return float(value)
    raise ValueError(f"{name} must be a number from 0 to 1 (got {value!r})")

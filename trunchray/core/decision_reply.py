"""Reading a judge's reply, strictly: one violation makes all of it a fallback, and nothing is clamped or repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from trunchray.core.decisions import NO, YES, Decision, Fallback, FallbackReason, Question
from trunchray.core.excerpt import excerpt
from trunchray.core.json_object import read_object
from trunchray.core.share import check_total

_KEYS = frozenset({"decisions", "fallback"})


def read_reply(questions: Sequence[Question], reply: object) -> tuple[Decision, ...] | Fallback:
    """What a step or function that judges returned: `{decisions}` or `{fallback: true, reason, detail?}`.

    Either may come as JSON text, alone or under `reply`, as agents return it (`{reply: "<json>"}`). Never raises:
    anything else is a fallback with the reason parse-error.
    """
    try:
        return _read_object(questions, _opened(reply))
    except ValueError as e:
        return Fallback("parse-error", str(e))


def _opened(reply: object) -> Mapping[str, Any]:
    if isinstance(reply, Mapping) and isinstance(reply.get("reply"), str) and not reply.keys() & _KEYS:
        reply = reply["reply"]
    if isinstance(reply, str):
        return read_object(reply)
    if not isinstance(reply, Mapping):
        raise ValueError(f"a judge returns {{decisions}} or {{fallback: true, reason}}, not {_cut(reply)}")
    return reply


def _read_object(questions: Sequence[Question], reply: Mapping[str, Any]) -> tuple[Decision, ...] | Fallback:
    if reply.get("fallback") is True:
        return _read_fallback(reply)
    if "decisions" not in reply:
        raise ValueError(f"a judge returns {{decisions}} or {{fallback: true, reason}}, not {_cut(dict(reply))}")
    return read_decisions(questions, reply["decisions"])


def _read_fallback(reply: Mapping[str, Any]) -> Fallback:
    reason: Any = reply.get("reason")
    detail, status = reply.get("detail"), reply.get("httpStatus")
    if reason not in get_args(FallbackReason):
        raise ValueError(f"a fallback whose reason is {_cut(reason)}, not one of {', '.join(get_args(FallbackReason))}")
    return Fallback(
        reason,
        detail if isinstance(detail, str) else None,
        http_status=status if isinstance(status, int) and not isinstance(status, bool) else None,
    )


def read_decisions(questions: Sequence[Question], reply: object) -> tuple[Decision, ...] | Fallback:
    """The decisions in a reply, in the order of the questions: one for each, and none besides.

    `reply` is a list of decisions with ids, in any order, or a mapping of ids to decisions:

    - of a boolean question `{type: "noul", noul: p}`, where p is the probability of yes;
    - of a choice `{type: "choice", choice, probabilities: {option: p}, confidence}`;
    - of a score `{type: "score", score, legend: {"0": …}, probabilities: {"0": p}, confidence}`, where levels are
      numbered from 0, the lowest, and `score` is the expected number.

    All p and `confidence` are from 0 to 1; those of one answer add up to 1 ± 0.02; `score` is from 0 to the highest
    number; keys are exactly the options or the numbers of the levels. Further keys of a decision are passed over.
    Never raises: one violation makes the whole reply a fallback with the reason parse-error.
    """
    try:
        found = _by_id(reply)
        _match_ids([question.id for question in questions], found)
        return tuple(_read_decision(question, found[question.id]) for question in questions)
    except ValueError as e:
        return Fallback("parse-error", str(e))


def _by_id(reply: object) -> dict[str, Mapping[str, Any]]:
    if isinstance(reply, Mapping):
        listed = [(str(key), decision) for key, decision in reply.items()]
    elif isinstance(reply, list | tuple):
        listed = [(decision.get("id") if isinstance(decision, Mapping) else None, decision) for decision in reply]
    else:
        raise ValueError(f"decisions must be a list, or a mapping by id, not {_cut(reply)}")
    found: dict[str, Mapping[str, Any]] = {}
    for key, decision in listed:
        if not isinstance(decision, Mapping) or not isinstance(key, str) or decision.get("id", key) != key:
            raise ValueError(f"not a decision with its id: {_cut(decision)}")
        if key in found:
            raise ValueError(f"two decisions have the id {_cut(key)}")
        found[key] = decision
    return found


def _match_ids(asked: Sequence[str], found: Mapping[str, object]) -> None:
    if missing := [name for name in asked if name not in found]:
        raise ValueError(f"no decision about {', '.join(map(_cut, missing))}")
    if unknown := found.keys() - set(asked):
        raise ValueError(f"decisions that nobody asked for: {', '.join(map(_cut, sorted(unknown)))}")


def _read_decision(question: Question, raw: Mapping[str, Any]) -> Decision:
    try:
        match question.type:
            case "boolean":
                return _read_noul(question, raw)
            case "choice":
                return _read_choice(question, raw)
            case "score":
                return _read_score(question, raw)
    except ValueError as e:
        raise ValueError(f"decision {question.id!r}: {e}") from e


def _read_noul(question: Question, raw: Mapping[str, Any]) -> Decision:
    _check_type(raw, "noul")
    yes = _number(raw, "noul", 1)
    return Decision(question.id, {YES: yes, NO: 1 - yes})


def _read_choice(question: Question, raw: Mapping[str, Any]) -> Decision:
    _check_type(raw, "choice")
    _number(raw, "confidence", 1)
    picked = raw.get("choice")
    if not isinstance(picked, str) or picked not in question.answers:
        raise ValueError(f"choice is {_cut(picked)}, which is not an option")
    return Decision(question.id, _distribution(raw, list(question.answers)), picked)


def _read_score(question: Question, raw: Mapping[str, Any]) -> Decision:
    _check_type(raw, "score")
    _number(raw, "confidence", 1)
    levels = list(question.answers)
    numbers = [str(number) for number in range(len(levels))]
    _number(raw, "score", len(levels) - 1)
    _exact_keys(raw, "legend", numbers)
    found = _distribution(raw, numbers)
    return Decision(question.id, {level: found[number] for level, number in zip(levels, numbers, strict=True)})


def _check_type(raw: Mapping[str, Any], expected: str) -> None:
    if raw.get("type") != expected:
        raise ValueError(f"its type is {_cut(raw.get('type'))}, not {expected!r}")


def _distribution(raw: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    given = _exact_keys(raw, "probabilities", names)
    found = {name: _number(given, name, 1, "the probability of ") for name in names}
    check_total(found.values())
    return found


def _exact_keys(raw: Mapping[str, Any], place: str, names: Sequence[str]) -> Mapping[str, Any]:
    given = raw.get(place)
    if not isinstance(given, Mapping) or set(given) != set(names):
        shown = list(given) if isinstance(given, Mapping) else given
        raise ValueError(f"{place} must have exactly the keys {_cut(list(names))}, not {_cut(shown)}")
    return given


def _number(raw: Mapping[str, Any], name: str, most: float, what: str = "") -> float:
    value: Any = raw.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{what}{name} must be a number from 0 to {most:g}, not {_cut(value)}")
    return float(value)


def _cut(value: object) -> str:
    return excerpt(repr(value), 120)

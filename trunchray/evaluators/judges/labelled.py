"""What a language model answered under labels, as decisions. Pure, and as strict as with any other judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from trunchray.adapters.models.base import ModelReply
from trunchray.core.decision_reply import TOLERANCE, read_decisions
from trunchray.core.decisions import YES, Decision, Fallback, Question
from trunchray.core.json_object import read_object
from trunchray.evaluators.judges.prompt import labels
from trunchray.evaluators.judges.token_odds import token_odds


def read_labelled(questions: Sequence[Question], reply: ModelReply) -> tuple[Decision, ...] | Fallback:
    """The decisions in a reply, all of them or none.

    Their probabilities are those of the labels' tokens, where the reply has them for every question (`logprobs`), else
    the ones it states itself (`stated`). What it states must be right in any case.
    """
    numbers = [str(number) for number in range(1, len(questions) + 1)]
    try:
        said = read_object(reply.text)
        decisions = [_decision(question, said.get(number)) for number, question in zip(numbers, questions, strict=True)]
        if unknown := sorted(said.keys() - set(numbers)):
            raise ValueError(f"answers to what nobody asked: {', '.join(unknown)}")
    except ValueError as e:
        return Fallback("parse-error", _why(e, reply))
    found = read_decisions(questions, decisions)
    if isinstance(found, Fallback):
        return found
    in_order = list(said) == numbers  # tokens are found by their place
    odds = token_odds(reply, [list(labels(question)) for question in questions]) if in_order else None
    if odds is None:
        return tuple(replace(decision, method="stated") for decision in found)
    return tuple(_by_tokens(question, each) for question, each in zip(questions, odds, strict=True))


def _why(error: ValueError, reply: ModelReply) -> str:
    return str(error) if reply.finish_reason in ("stop", "other") else f"{error} (finish reason {reply.finish_reason})"


def _decision(question: Question, entry: object) -> dict[str, Any]:
    """One answer in the shape that all judges are read in."""
    try:
        answer, stated = _parts(entry)
        named = labels(question)
        if answer not in named:
            raise ValueError(f"its answer is {answer!r:.100}, not one of the labels {', '.join(named)}")
        if set(stated) != set(named):
            raise ValueError(f"its probabilities are of {list(stated)!r:.100}, not of {', '.join(named)}")
        return _shaped(question, named, answer, stated)
    except ValueError as e:
        raise ValueError(f"question {question.id!r}: {e}") from e


def _parts(entry: object) -> tuple[Any, Mapping[str, Any]]:
    if not isinstance(entry, Mapping):
        raise ValueError(f"it is answered by {entry!r:.100}, not by an answer with probabilities")
    stated = entry.get("probabilities")
    if not isinstance(stated, Mapping):
        raise ValueError(f"its probabilities are {stated!r:.100}")
    return entry.get("answer"), stated


def _shaped(question: Question, named: Mapping[str, str], answer: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    if question.type == "choice":
        probabilities = {named[label]: stated[label] for label in named}
        rest = {"choice": named[answer], "probabilities": probabilities, "confidence": stated[answer]}
        return {"id": question.id, "type": "choice", **rest}
    numbers = {label: _number(stated[label]) for label in named}
    if numbers[answer] < max(numbers.values()) - 1e-9:
        raise ValueError(f"it answers {answer!r}, and holds another answer to be likelier")
    if question.type == "boolean":
        total = fsum(numbers.values())
        if abs(total - 1) > TOLERANCE + 1e-9:
            raise ValueError(f"its probabilities add up to {total:.4g}, not to 1 ± {TOLERANCE:g}")
        return {"id": question.id, "type": "noul", "noul": numbers[YES]}
    keys = [str(place) for place in range(len(named))]
    return {
        "id": question.id,
        "type": "score",
        "score": _expected(list(numbers.values())),
        "legend": dict(zip(keys, named.values(), strict=True)),
        "probabilities": dict(zip(keys, numbers.values(), strict=True)),
        "confidence": numbers[answer],
    }


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"a probability is a number from 0 to 1, not {value!r:.100}")
    return float(value)


def _expected(shares: Sequence[float]) -> float:
    """The expected number of the level; shares that add up to almost 1 must not lead out of the scale."""
    total = fsum(shares)
    return fsum(place * share for place, share in enumerate(shares)) / total if total else 0.0


def _by_tokens(question: Question, odds: Mapping[str, float]) -> Decision:
    """The decision that the tokens' probabilities make, in which the likeliest label is the one chosen."""
    named = labels(question)
    likeliest = max(named, key=lambda label: odds[label])
    choice = named[likeliest] if question.type == "choice" else None
    return Decision(question.id, {named[label]: odds[label] for label in named}, choice, "logprobs")

"""Decisions from a language model's reply, which names answers by their labels; as strict as for any other judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, NamedTuple

from trunchray.adapters.models.base import ModelReply
from trunchray.core.decision_reply import read_decisions
from trunchray.core.decisions import YES, Decision, Fallback, Question
from trunchray.core.json_object import read_object
from trunchray.core.share import check_total, is_share
from trunchray.evaluators.judges.prompt import labels
from trunchray.evaluators.judges.token_probabilities import token_probabilities


def read_labelled(questions: Sequence[Question], reply: ModelReply) -> tuple[Decision, ...] | Fallback:
    """The decisions in a reply, all of them or none.

    Their probabilities are those of the labels' tokens (`logprobs`) where the reply has them for every question, and
    those that it states are ignored. Otherwise they are the stated ones (`stated`), which must be valid.
    """
    numbers = [str(number) for number in range(1, len(questions) + 1)]
    try:
        said = read_object(reply.text)
        if unknown := sorted(said.keys() - set(numbers)):
            raise ValueError(f"answers that nobody asked for: {', '.join(unknown)}")
        answers = [_answer(question, said.get(number)) for number, question in zip(numbers, questions, strict=True)]
        in_order = list(said) == numbers  # tokens are found by their place
        by_token = token_probabilities(reply, [list(labels(each)) for each in questions]) if in_order else None
        if by_token is not None:
            return tuple(_by_tokens(question, each) for question, each in zip(questions, by_token, strict=True))
        stated = [_stated(question, answer) for question, answer in zip(questions, answers, strict=True)]
    except ValueError as e:
        return Fallback("parse-error", _why(e, reply))
    found = read_decisions(questions, stated)
    return found if isinstance(found, Fallback) else tuple(replace(each, method="stated") for each in found)


def _why(error: ValueError, reply: ModelReply) -> str:
    return str(error) if reply.finish_reason in ("stop", "other") else f"{error} (finish reason {reply.finish_reason})"


class _Answer(NamedTuple):
    label: str
    stated: Any


def _answer(question: Question, entry: object) -> _Answer:
    if not isinstance(entry, Mapping):
        raise ValueError(f"question {question.id!r}: {entry!r:.100} is not an answer with probabilities")
    label, named = entry.get("answer"), labels(question)
    if not isinstance(label, str) or label not in named:
        raise ValueError(f"question {question.id!r}: its answer is {label!r:.100}, not one of {', '.join(named)}")
    return _Answer(label, entry.get("probabilities"))


def _stated(question: Question, answer: _Answer) -> dict[str, Any]:
    """What a model says of one answer, in the shape that all judges are read in."""
    named, stated = labels(question), answer.stated
    try:
        if not isinstance(stated, Mapping) or set(stated) != set(named):
            shown = list(stated) if isinstance(stated, Mapping) else stated
            raise ValueError(f"its probabilities are of {shown!r:.100}, not of {', '.join(named)}")
        return _shaped(question, named, answer.label, stated)
    except ValueError as e:
        raise ValueError(f"question {question.id!r}: {e}") from e


def _shaped(question: Question, named: Mapping[str, str], answer: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    if question.type == "choice":
        probabilities = {named[label]: stated[label] for label in named}
        rest = {"choice": named[answer], "probabilities": probabilities, "confidence": stated[answer]}
        return {"id": question.id, "type": "choice", **rest}
    numbers = {label: _number(stated[label]) for label in named}
    if numbers[answer] < max(numbers.values()) - 1e-9:
        raise ValueError(f"it answers {answer!r}, and holds another answer to be likelier")
    if question.type == "boolean":
        check_total(numbers.values())
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
    if not is_share(value):
        raise ValueError(f"a probability is a number from 0 to 1, not {value!r:.100}")
    return float(value)


def _expected(shares: Sequence[float]) -> float:
    """The expected number of the level; shares that add up to almost 1 must not lead out of the scale."""
    total = fsum(shares)
    return fsum(place * share for place, share in enumerate(shares)) / total if total else 0.0


def _by_tokens(question: Question, probabilities: Mapping[str, float]) -> Decision:
    """The decision that the tokens' probabilities make, in which the likeliest label is the one chosen."""
    named = labels(question)
    likeliest = max(named, key=lambda label: probabilities[label])
    choice = named[likeliest] if question.type == "choice" else None
    return Decision(question.id, {named[label]: probabilities[label] for label in named}, choice, "logprobs")

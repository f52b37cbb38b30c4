"""What is allowed but probably not meant. Cases with the same doubt are told of once, with the first as the example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trunchray.core import javascript
from trunchray.core.checks import AnswerBank, Check, Contains, Custom, Exact
from trunchray.errors import Problem
from trunchray.frontends.benchmark.cases import ExpandedCase
from trunchray.frontends.benchmark.position import Position, shown

_SHORT = 2
"""Characters; so short an expected text occurs in almost any answer."""


def warnings(module: str, cases: Sequence[ExpandedCase]) -> list[str]:
    """The doubts about the cases of one eval module, sorted by place."""
    doubts: dict[tuple[str, str], list[Problem]] = {}
    for case in cases:
        for rule, message in _doubts(case.check):
            place = case.check_place.at("evaluate")
            doubts.setdefault((place.path, rule), []).append(place.problem(message))
    first = [_counted(list(dict.fromkeys(problems))) for problems in doubts.values()]
    without_data = [case for case in cases if isinstance(case.check, Custom) and case.place.row]
    if without_data and not any(case.has_data for case in without_data):
        message = "is a function, but no case has `data`, so it grades all cases alike"
        first.append(Position(module, 0, "evaluate").problem(message))
    return [str(problem) for problem in sorted(first)]


def _counted(problems: list[Problem]) -> Problem:
    example, more = problems[0], len(problems) - 1
    note = f" (and {more} more like it in this file)" if more else ""
    return replace(example, message=example.message + note)


def _doubts(check: Check | None) -> Iterator[tuple[str, str]]:
    """Pairs of a rule's name and what it says of this check."""
    match check:
        case Contains(expected=expected) if len(javascript.trim(expected)) <= _SHORT:
            yield "short", f"'contains' {shown(expected)} is so short that almost any answer passes; use 'exact'"
        case Exact(expected=expected) if javascript.trim(expected) != expected:
            yield "blanks", f"'exact' {shown(expected)} has outer blanks, which are trimmed before comparing"
        case AnswerBank():
            yield from _bank_doubts(check)
        case _:
            pass


def _bank_doubts(bank: AnswerBank) -> Iterator[tuple[str, str]]:
    for entry in (*bank.answers, *bank.forbidden_answers):
        if len(javascript.normalise(entry)) <= _SHORT:
            yield "short", f"'answer_bank' entry {shown(entry)} is so short that it occurs in almost any answer"
    for answer in bank.answers:
        for forbidden in bank.forbidden_answers:
            if javascript.normalise(answer) in javascript.normalise(forbidden):
                yield "inside", f"answer {shown(answer)} is part of the forbidden {shown(forbidden)}"

"""Evaluators that read the answer's text alone."""

from __future__ import annotations

import re

from trunchray.core import javascript
from trunchray.core.checks import AnswerBank, Contains, Exact, Gsm8k, NonEmpty
from trunchray.core.trial import Verdict
from trunchray.evaluators.quote import quote, quote_some

TextCheck = NonEmpty | Exact | Contains | AnswerBank | Gsm8k

_final_number = re.compile(r"#### (-?[0-9.,]+)")


def grade_text(check: TextCheck, output: str) -> Verdict:
    """Score 1 or 0, and a message that says why when it is 0."""
    complaint = _complaint(check, output)
    return Verdict(passed=complaint is None, score=float(complaint is None), message=complaint)


def final_number(output: str) -> str | None:
    """What the grade-school-math data set's own rule extracts: the first `#### <number>`, its commas removed.

    The result is text, not always a number (`.5`, `-.`); None when nothing matches.
    """
    match = _final_number.search(output)
    return match[1].replace(",", "") if match else None


def _complaint(check: TextCheck, output: str) -> str | None:
    """Why the check fails; None when it passes."""
    match check:
        case NonEmpty():
            return None if javascript.trim(output) else "the answer is empty"
        case Exact(expected=expected):
            return _exact(javascript.trim(expected), javascript.trim(output))
        case Contains(expected=expected):
            wanted = javascript.trim(expected)
            return None if wanted.lower() in output.lower() else f"the answer does not contain {quote(wanted)}"
        case AnswerBank():
            return _answer_bank(check, javascript.normalise(output))
        case Gsm8k(expected=expected):
            return _gsm8k(expected, final_number(output))


def _exact(expected: str, answer: str) -> str | None:
    return None if answer == expected else f"the answer is {quote(answer)}, not {quote(expected)}"


def _answer_bank(check: AnswerBank, answer: str) -> str | None:
    for forbidden in check.forbidden_answers:
        if javascript.normalise(forbidden) in answer:
            return f"the answer contains the forbidden {quote(forbidden)}"
    if any(javascript.normalise(accepted) in answer for accepted in check.answers):
        return None
    return f"the answer contains none of {quote_some(check.answers)}"


def _gsm8k(expected: str, extracted: str | None) -> str | None:
    if extracted is None:
        return f"the answer has no '#### <number>'; expected {quote(expected)}"
    return None if extracted == expected else f"extracted {quote(extracted)}, expected {quote(expected)}"

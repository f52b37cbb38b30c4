"""What a check makes of the second answer, where the judge was unsure and an agent was asked again."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from trunchray.core.check_result import CheckResult
from trunchray.core.excerpt import excerpt
from trunchray.core.rule import Rule

QUOTES = ('""', "''", "``", "“”", "‘’", "«»")
"""Pairs that may stand around an answer."""


def answered(rule: Rule, first: CheckResult, reply: str) -> CheckResult:
    """The verdict from an agent's reply, in place of the judge's `first` one, which was unsure.

    The judge's probabilities are kept. A reply that is not exactly one of the answers fails.
    """
    answer = matching_answer(reply, rule.answers)
    if answer is None:
        space = ", ".join(map(repr, rule.answers))
        return unanswered(first, f"replied {excerpt(reply, 80)!r}, which is not exactly one of {excerpt(space, 200)}")
    passed = answer in rule.passing
    explanation = None if passed else f"answered {answer!r} when asked again"
    found = {"passed": passed, "value": rule.worth[answer], "explanation": explanation, "escalated": True}
    return first.model_copy(update=found)


def unanswered(first: CheckResult, reason: str) -> CheckResult:
    """The verdict when the agent gave no answer: a failure that keeps the judge's probabilities."""
    found = {"passed": False, "value": 0.0, "explanation": f"escalation: {reason}", "escalated": True}
    return first.model_copy(update=found)


def matching_answer(reply: str, answers: Iterable[str]) -> str | None:
    """The answer that a reply is, ignoring case and blanks, one pair of quotes and one full stop around it.

    Never looks inside prose. None when it is not an answer, or could be several.
    """
    normal = [(answer, _normal(answer)) for answer in answers]
    said = _normal(reply)
    for form in dict.fromkeys((said, _bare(said))):  # as it is first: an answer may have its own full stop
        if found := [answer for answer, known in normal if known == form]:
            return found[0] if len(found) == 1 else None
    return None


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


def _bare(text: str) -> str:
    """Without one full stop at the end and one pair of quotes, whichever is outside."""
    shorter = text.removesuffix(".")
    unquoted = _unquoted(shorter)
    return unquoted if shorter != text else unquoted.removesuffix(".")


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] + text[-1] in QUOTES
    return text[1:-1] if quoted else text

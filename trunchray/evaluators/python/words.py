"""Checks of words in the output: `mentions` and `avoids`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trunchray.core.check_result import CheckResult
from trunchray.core.plain import as_text, plain
from trunchray.core.record import RunRecord
from trunchray.evaluators.python.helper import Helper, async_problem, at_least_problem, names_problem
from trunchray.evaluators.python.showing import clean, shown
from trunchray.evaluators.quote import quote_some

Words = Sequence[str] | Callable[[RunRecord], Any]
"""The same words for every case, or a function that returns the list of those for a run."""


def mentions(words: Words, *, at_least: float = 1) -> Mentions:
    """The output has every word in it, in upper or lower case; the value is the share of them that it has.

    With `at_least`, above 0 and at most 1, it passes from that share on. A word may be any text, and is found within
    others. An output that is not a string is searched as canonical JSON. No words for a case: passes, with value 1.
    """
    return Mentions(words, at_least)


def avoids(words: Words) -> Avoids:
    """The output has none of the words in it, found as `mentions` does; value 1 or 0."""
    return Avoids(words)


class _Words(Helper):
    words: Any

    def problem(self) -> str | None:
        if callable(self.words):
            return async_problem("the function that says the words", self.words)
        return names_problem("words", self.words) or (None if self.words else "needs at least one word")

    def _of(self, run: RunRecord) -> list[str] | str:
        """The words for a run, or what is wrong with them."""
        if not callable(self.words):
            return list(self.words)
        found: Any = self.words(run)
        if names_problem("words", found):
            return f"words returned {shown(found)}; they must be a list of strings"
        return list(found)

    def _decided(self, run: RunRecord) -> CheckResult:
        words = self._of(run)
        if isinstance(words, str):
            return CheckResult.failed(words)
        try:
            text = _text(run.output).casefold()
        except ValueError as e:
            return CheckResult.failed(clean(f"output has no text: {e}"))
        return self._judged(words, [word.casefold() in text for word in words])

    @abstractmethod
    def _judged(self, words: Sequence[str], present: Sequence[bool]) -> CheckResult: ...


@dataclass(frozen=True)
class Mentions(_Words):
    words: Any
    at_least: Any = 1

    def problem(self) -> str | None:
        return super().problem() or at_least_problem(self.at_least)

    def __call__(self, run: RunRecord) -> CheckResult:
        return self._decided(run)

    def _judged(self, words: Sequence[str], present: Sequence[bool]) -> CheckResult:
        value = sum(present) / len(words) if words else 1.0
        missing = [word for word, there in zip(words, present, strict=True) if not there]
        explanation = f"does not mention {quote_some(missing)}" if missing else None
        return CheckResult(passed=value >= self.at_least, value=value, explanation=explanation)


@dataclass(frozen=True)
class Avoids(_Words):
    words: Any

    def __call__(self, run: RunRecord) -> CheckResult:
        return self._decided(run)

    def _judged(self, words: Sequence[str], present: Sequence[bool]) -> CheckResult:
        found = [word for word, there in zip(words, present, strict=True) if there]
        if found:
            return CheckResult.failed(f"mentions {quote_some(found)}")
        return CheckResult(passed=True, value=1.0)


def _text(output: object) -> str:
    """The text that is searched. Raises ValueError when the output has no JSON form."""
    if isinstance(output, str):
        return output
    return as_text(plain(output))

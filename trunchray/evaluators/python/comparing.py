"""Checks of the output against what the case expects: `matches` and `includes`."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from trunchray.core import javascript
from trunchray.core.check_result import CheckResult
from trunchray.core.excerpt import excerpt
from trunchray.core.record import RunRecord
from trunchray.evaluators.json_equality import json_equal
from trunchray.evaluators.python.helper import Helper, async_problem
from trunchray.evaluators.python.showing import clean, shown
from trunchray.evaluators.quote import LONGEST, quote, quote_some

Accessor = Callable[[Any], object]
"""Takes from the output, and from what is expected, that which is compared."""

NOTHING_EXPECTED = "no expectedOutput"
AROUND = 30
"""Characters that are shown before and after the place where two texts part."""
PLACE = 200
"""Characters of the way to a value."""


def matches(field: str | Accessor | None = None) -> Matches:
    """The output equals `expectedOutput` as JSON; or a `field` of the one equals that of the other.

    A field is a key, or a function that is called with each of the two. True is not 1, 1 is 1.0, NaN is NaN; lists are
    compared in order, objects whatever the order of their keys; a key with null is not a missing one. A case without
    `expectedOutput`, or where one side lacks the field, fails.
    """
    return Matches(field)


def includes() -> Includes:
    """Output and `expectedOutput` are strings, and the one has the other in it; value 1 or 0.

    Of both first the NFKC form is taken, blanks around are removed, and runs of blanks become one. Case counts. An
    `expectedOutput` of which nothing is left fails.
    """
    return Includes()


class _NothingThereError(Exception):
    """One side has nothing to compare."""


@dataclass(frozen=True)
class Matches(Helper):
    field: Any = None

    def problem(self) -> str | None:
        if self.field is None or (isinstance(self.field, str) and self.field):
            return None
        if not callable(self.field):
            return f"matches() takes a key or a function (got {self.field!r})"
        return async_problem("the function of matches()", self.field)

    def __call__(self, run: RunRecord) -> CheckResult:
        if not run.has_expected_output:
            return CheckResult.failed(NOTHING_EXPECTED)
        try:
            output, expected = self._part("output", run.output), self._part("expectedOutput", run.expected_output)
        except _NothingThereError as e:
            return CheckResult.failed(str(e))
        if json_equal(output, expected):
            return CheckResult(passed=True, value=1.0)
        return CheckResult.failed(_difference(output, expected))

    def _part(self, side: str, value: object) -> Any:
        """What is compared of one side. Raises _NothingThereError."""
        if callable(self.field):
            return _json(side, self.field(value))
        found = _json(side, value)
        if self.field is None:
            return found
        if not isinstance(found, dict) or self.field not in found:
            raise _NothingThereError(f"no field {self.field!r} in {side}")
        return found[self.field]


def _json(side: str, value: object) -> Any:
    """As JSON, but with NaN and infinities. Raises _NothingThereError when it has no such form."""
    try:
        return to_jsonable_python(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError) as e:
        raise _NothingThereError(clean(f"{side} has no JSON form: {e}")) from e


def _difference(output: Any, expected: Any, place: str = "output") -> str:
    """Where the two first differ, and how."""
    match output, expected:
        case dict(), dict() if output.keys() == expected.keys():
            key = next(key for key in output if not json_equal(output[key], expected[key]))
            return _difference(output[key], expected[key], f"{place}.{key}")
        case list(), list() if len(output) == len(expected):
            at = next(at for at, pair in enumerate(zip(output, expected, strict=True)) if not json_equal(*pair))
            return _difference(output[at], expected[at], f"{place}[{at}]")
        case dict(), dict() if _is_long(output, expected):
            return _uneven_keys(output, expected, place)
        case list(), list() if _is_long(output, expected):
            return _uneven_length(output, expected, place)
        case str(), str() if _is_long(output, expected):
            return _first_letters(output, expected, place)
        case _:
            return clean(f"{excerpt(place, PLACE)} is {quote(output)}, not {quote(expected)}")


def _is_long(*values: Any) -> bool:
    """Whether what would be shown of one of them is not all of it."""
    return any(len(json.dumps(value, ensure_ascii=False)) > LONGEST for value in values)


def _uneven_keys(output: Mapping[str, Any], expected: Mapping[str, Any], place: str) -> str:
    missing = [key for key in expected if key not in output]
    extra = [key for key in output if key not in expected]
    said = [f"{word} {quote_some(keys)}" for word, keys in (("lacks", missing), ("also has", extra)) if keys]
    return clean(f"{excerpt(place, PLACE)} {' and '.join(said)}")


def _uneven_length(output: Sequence[Any], expected: Sequence[Any], place: str) -> str:
    """Lists of another length: the first item that differs, or else the first that only one has."""
    sizes = f"{excerpt(place, PLACE)} has {len(output):,} items, not {len(expected):,}"
    at = next((at for at, pair in enumerate(zip(output, expected, strict=False)) if not json_equal(*pair)), None)
    if at is not None:
        return clean(f"{sizes}; {_difference(output[at], expected[at], f'{place}[{at}]')}")
    longer, said = (output, "more") if len(output) > len(expected) else (expected, "missing")
    at = min(len(output), len(expected))
    return clean(f"{sizes}; {said} is [{at}]: {quote(longer[at])}")


def _first_letters(output: str, expected: str, place: str) -> str:
    """Texts: where they part, and what is around that place in both."""
    at = next((at for at, (a, b) in enumerate(zip(output, expected, strict=False)) if a != b), None)
    at = min(len(output), len(expected)) if at is None else at
    here, there = (
        quote(f"{'…' * (at > AROUND)}{text[max(0, at - AROUND) : at + AROUND]}") for text in (output, expected)
    )
    return clean(f"{excerpt(place, PLACE)} differs from character {at + 1:,} on: {here}, not {there}")


@dataclass(frozen=True)
class Includes(Helper):
    def problem(self) -> str | None:
        return None

    def __call__(self, run: RunRecord) -> CheckResult:
        if not run.has_expected_output:
            return CheckResult.failed(NOTHING_EXPECTED)
        for side, value in (("output", run.output), ("expectedOutput", run.expected_output)):
            if not isinstance(value, str):
                return CheckResult.failed(f"{side} is {shown(value)}, not a string")
        wanted = _collapsed(str(run.expected_output))
        if not wanted:
            return CheckResult.failed("expectedOutput is empty")
        if wanted in _collapsed(run.output):
            return CheckResult(passed=True, value=1.0)
        return CheckResult.failed(f"output does not include {quote(wanted)}")


def _collapsed(text: str) -> str:
    return javascript.collapse(unicodedata.normalize("NFKC", text))

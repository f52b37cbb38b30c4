"""The parts that every case of a Python evaluation or calibration has, as a program or a file gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import JsonValue

from trunchray.core.case import CaseInput
from trunchray.core.digest import canonical
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.names import is_name, nearest
from trunchray.core.plain import as_text, stable
from trunchray.errors import UsageError

_KEYS = ("name", "input", "expectedOutput", "meta")
_OLD = ("expect", "expected")


class GivenCase(Frozen):
    """What a task is given, and what it should return."""

    name: str
    input: JsonValue
    expected: tuple[JsonValue, ...] = ()
    """The `expectedOutput`, which may be null; empty where there is none."""

    @classmethod
    def of(cls, place: str, row: Mapping[Any, object], /, **own: Any) -> Self:
        """The case in a row whose keys are known; `own` is what a subclass adds.

        Raises:
            UsageError: the name is no text, or the input or the expected output is not a JSON value.
        """
        given = _json(f"{place}: input", row["input"])
        expected = (_json(f"{place}: expectedOutput", row["expectedOutput"]),) if "expectedOutput" in row else ()
        return cls(name=_name(place, row.get("name"), given), input=given, expected=expected, **own)

    @property
    def case_input(self) -> CaseInput:
        """The input as agents are given it."""
        if isinstance(self.input, str):
            return CaseInput(prompt=self.input)
        return CaseInput(prompt=as_text(self.input), structured=True)


def checked_row(place: str, row: object, *, also: tuple[str, ...], needs: tuple[str, ...]) -> Mapping[Any, object]:
    """The row, which has every key that it needs, and none but those of a case and those that it may have `also`.

    Raises:
        UsageError: it is not a mapping, or its keys are others.
    """
    if not isinstance(row, Mapping):
        raise UsageError(
            f"{place}: a case is an object with an {' and '.join(map(repr, needs))}, not {type(row).__name__}"
        )
    known = (*_KEYS, *also)
    for key in row:
        if key in _OLD:
            raise UsageError(f"{place}: {key!r} is not a key of a case; the expected output is 'expectedOutput'")
        if key not in known:
            raise UsageError(
                f"{place}: unknown key {key!r}{nearest(str(key), known)}; put what else there is in 'meta'"
            )
    for key in needs:
        if key not in row:
            raise UsageError(f"{place}: a case needs {key!r}")
    return row


def _name(place: str, name: object, given: JsonValue) -> str:
    if name is None:
        return as_text(given)
    if not is_name(name):
        raise UsageError(f"{place}: name: expected a text, got {excerpt(repr(name), 60)}")
    return name


def _json(place: str, value: object) -> JsonValue:
    """The value as JSON, small enough in every number to be named by its hash."""
    try:
        found = stable(value)
        canonical(found)
    except ValueError as e:
        raise UsageError(f"{place}: {e}") from e
    return found

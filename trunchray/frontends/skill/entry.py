"""One object of a list in a JSON file, whose fields are read one by one, and the problems of all of them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import JsonValue

from trunchray.core.excerpt import excerpt
from trunchray.core.names import meant
from trunchray.errors import UsageError
from trunchray.frontends.checked import shown

MOST = 20
"""Problems that one message tells."""

T = TypeVar("T")


class Entry:
    """An object at a `place`, such as `evals/cases.json: cases[3]`; `what` names it: "a case"."""

    def __init__(
        self, place: str, value: JsonValue, *, what: str, needs: Sequence[str], takes: Sequence[str] = ()
    ) -> None:
        """Check that it is an object with the keys that it `needs`; others are those that it `takes`, and the author's.

        Raises:
            UsageError: it is something else, or lacks some of them; naming those, and the keys that there are. Or a key
                looks like another that is not there, so that what it says would be lost.
        """
        wanted = " and ".join(map(repr, needs))
        if not isinstance(value, dict):
            raise UsageError(f"{place}: {what} is an object with {wanted}, not {kind(value)}")
        if missing := [key for key in needs if value.get(key) is None]:
            lacks = " and no ".join(map(repr, missing))
            raise UsageError(f"{place}: has no {lacks}; {what} needs {wanted}, and this one has {_listed(value)}")
        for key in value:
            if key not in (known := [*needs, *takes]) and (other := meant(key, known)) and value.get(other) is None:
                raise UsageError(f"{place}: {excerpt(repr(key), 80)} is no key of {what}; did you mean {other!r}?")
        self.place, self.fields = place, value

    def text(self, key: str) -> str | None:
        """A text; None where there is none, or null."""
        value = self.fields.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.refused(key, "must be text")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, none of them blank; empty where there is none, or null."""
        value = self.fields.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.refused(key, "must be a list of texts")
        found = [text for text in value if isinstance(text, str) and text.strip()]
        if len(found) < len(value):
            wrong = next(at for at, text in enumerate(value) if not isinstance(text, str) or not text.strip())
            raise UsageError(f"{self.place}: {key}[{wrong}] must be text (got {shown(value[wrong])})")
        return tuple(found)

    def seconds(self, key: str) -> float | None:
        """A number above 0; None where there is none, or null."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.refused(key, "must be a number of seconds above 0")
        return float(value)

    def refused(self, key: str, why: str) -> UsageError:
        """What to say of a field, with its value."""
        return UsageError(f"{self.place}: {key!r} {why} (got {shown(self.fields.get(key))})")


def read_each(place: str, values: Sequence[JsonValue], read: Callable[[str, int, JsonValue], T]) -> list[T]:
    """What `read` makes of each value, given its place, such as `<place>[3]`, and that number, which counts from 0.

    Raises:
        UsageError: with each problem once, and how often it is there.
    """
    found: list[T] = []
    problems: dict[str, list[str]] = {}
    for at, value in enumerate(values):
        here = f"{place}[{at}]"
        try:
            found.append(read(here, at, value))
        except UsageError as e:
            problems.setdefault(str(e).removeprefix(here), []).append(here)
    if problems:
        told = [f"{places[0]}{problem}{_again(len(places) - 1)}" for problem, places in problems.items()]
        raise UsageError("\n".join(told[:MOST] + ([f"… and {len(told) - MOST} more"] if len(told) > MOST else [])))
    return found


def _again(times: int) -> str:
    return f" ({times} more like it)" if times else ""


def kind(value: JsonValue) -> str:
    """What a value is, as people call it."""
    match value:
        case dict():
            return f"an object with {_listed(value)}"
        case list():
            return "a list"
        case None:
            return "null"
        case _:
            return shown(value)


def _listed(keys: Iterable[str]) -> str:
    first = [repr(excerpt(key, 40)) for key in keys]
    return (", ".join(first[:8]) + (", …" if len(first) > 8 else "")) or "no keys"

"""Telling one piece of Python from another."""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trunchray.adapters.source_code import code_digest, described


def made(limit: int, names: tuple[str, ...] = ()) -> Callable[[Any], bool]:
    return lambda value: value <= limit and value not in names


def plain(value: int, least: int = 3) -> bool:
    return value >= least


def other(value: int, least: int = 3) -> bool:
    return value >= least + 1


class Kind(enum.Enum):
    A = 1
    B = 2


@dataclass(frozen=True)
class Limit:
    most: int
    kind: Kind = Kind.A

    def __call__(self, value: int) -> bool:
        return value <= self.most


class Checker:
    def __init__(self, most: int) -> None:
        self.most = most
        self.lock = threading.Lock()

    def __call__(self, value: int) -> bool:
        return value <= self.most

    def method(self, value: int) -> bool:
        return value <= self.most


def test_functions_are_told_apart_by_source_defaults_and_what_they_close_over() -> None:
    """So are lambdas on one line, bound methods, partials, callable objects and classes."""
    pair = [lambda value: value > 1, lambda value: value > 2]  # on one line, as people write them
    different = [
        plain,
        other,
        functools.partial(plain, least=4),
        functools.partial(plain, least=5),
        made(1),
        made(2),
        made(1, ("a",)),
        *pair,
        Limit(1),
        Limit(2),
        Limit(1, Kind.B),
        Limit(1).__call__,
        Checker(1),
        Checker(2),
        Limit,
        Checker,
        len,
        max,
        str.lower,
        str.upper,
    ]
    assert len({code_digest(value) for value in different}) == len(different)


def test_the_same_code_has_the_same_digest_wherever_it_is() -> None:
    """Made again, it is the same; clients, locks and the like are told by their class alone."""
    assert code_digest(made(1, ("a",))) == code_digest(made(1, ("a",)))
    assert code_digest(Limit(3)) == code_digest(Limit(3))
    assert code_digest(Checker(3)) == code_digest(Checker(3))
    assert code_digest(functools.partial(plain, least=4)) == code_digest(functools.partial(plain, least=4))


def test_code_without_source_is_told_by_its_byte_code() -> None:
    """As from a console."""

    def compiled(text: str) -> Any:
        names: dict[str, Any] = {}
        exec(text, names)
        return names["f"]

    assert code_digest(compiled("def f(x): return x > 1")) == code_digest(compiled("def f(x): return x > 1"))
    assert code_digest(compiled("def f(x): return x > 1")) != code_digest(compiled("def f(x): return x > 2"))
    assert code_digest(compiled("def f(x): return x > 1")) != code_digest(compiled("def f(x): return x < 1"))
    assert code_digest(compiled("def f(x): return [y for y in x]")) != code_digest(
        compiled("def f(x): return [y for y in x if y]")
    )


def test_a_function_that_closes_over_itself_is_told_once() -> None:
    """Without going round for ever."""

    def again(depth: int) -> int:
        return again(depth - 1) if depth else 0

    assert code_digest(again) == code_digest(again)


def test_a_name_that_is_not_bound_yet_is_no_problem() -> None:
    """Only what is there is told."""

    def outer() -> Callable[[], int]:
        def inner() -> int:
            return later

        told.append(code_digest(inner))
        later = 1
        return inner

    told: list[str] = []
    outer()
    assert len(told[0]) == 64


def test_values_are_told_by_content() -> None:
    """Mappings, sets in any order, numbers that JSON has not, and text that cannot be encoded."""
    values = [1, 1.0, True, "1", None, float("nan"), 10**400, "\ud800", b"1", [1], (1,), {1}, {"a": 1}, Kind.A, Kind.B]
    assert len({code_digest(value) for value in values}) == len(values)
    assert described({"b", "a", "c"}) == described({"c", "b", "a"})


def test_decorated_functions_are_told_with_what_decorates_them() -> None:
    """The wrapper as well as what it wraps."""

    def shouting(function: Callable[[str], str]) -> Callable[[str], str]:
        @functools.wraps(function)
        def wrapper(text: str) -> str:
            return function(text).upper()

        return wrapper

    def said(text: str) -> str:
        return text

    assert len({code_digest(said), code_digest(shouting(said)), code_digest(shouting(shouting(said)))}) == 3


@dataclass
class Holder:
    """Two that hold each other."""

    other: Any = field(default=None)

    def __call__(self) -> None: ...


def test_objects_that_hold_each_other_are_told_once() -> None:
    """Without going round for ever."""
    a = Holder()
    b = Holder(a)
    a.other = b
    assert len(code_digest(a)) == 64


class Unreadable:
    """Raises for whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_what_cannot_be_looked_into_is_told_by_its_class() -> None:
    """Neither depth nor size nor an object's own errors keep a function from being told."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    held = [deep, 10**5000, Unreadable(), "plain"]

    def closing_over(value: object) -> Callable[[], object]:
        return lambda: value

    assert len({code_digest(closing_over(value)) for value in held}) == len(held)

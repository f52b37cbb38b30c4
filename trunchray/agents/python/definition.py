"""What the definition of a workflow is, as Python writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trunchray.agents.python.peek import as_name, peek
from trunchray.errors import UsageError

FORMS = (
    "a mapping of names to steps, a list of (name, step) pairs or of steps with an id or a name, or an object or "
    "mapping with such `steps`"
)


class NamedStep(NamedTuple):
    """One step of a definition, as it stands there."""

    name: str
    step: Any


def looks_like_definition(given: object) -> bool:
    """Whether somebody could have meant it as one."""
    return isinstance(given, Mapping | list | tuple) or peek(given, "steps") is not None


def read_definition(given: object) -> tuple[NamedStep, ...]:
    """The steps of a definition in the order in which it lists them, at least one.

    A definition is a mapping of names to steps; or a list of pairs of a name and a step, of steps that have an `id` or
    a `name`, or of functions; or it has such `steps`, and with them it may have a `step_order` of all names. What a
    step is, is a matter for who runs it.

    Raises:
        UsageError: it has no such form, no step, or the same name twice.
    """
    inner, order = given, None
    if isinstance(steps := peek(given, "steps"), Mapping | list | tuple):
        inner, order = steps, peek(given, "stepOrder")
    if isinstance(inner, Mapping):
        found = [NamedStep(_named(name, place), step) for place, (name, step) in enumerate(inner.items(), 1)]
    elif isinstance(inner, list | tuple):
        found = [_entry(entry, place) for place, entry in enumerate(inner, 1)]
    else:
        raise UsageError(f"a workflow is {FORMS}; this is of type {type(given).__name__}")
    if not found:
        raise UsageError("the workflow has no steps")
    names = [step.name for step in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"the workflow has two steps named {twice!r}: give each step a name of its own")
    return tuple(found) if order is None else _ordered(found, order)


def _entry(entry: object, place: int) -> NamedStep:
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
        return NamedStep(_named(entry[0], place), entry[1])
    return NamedStep(_named(peek(entry, "id", "name") or getattr(entry, "__name__", None), place), entry)


def _named(name: object, place: int) -> str:
    if (found := as_name(name)) is None:
        raise UsageError(f"step {place} of the workflow has no name: a workflow is {FORMS}")
    return found


def _ordered(steps: Sequence[NamedStep], order: object) -> tuple[NamedStep, ...]:
    by_name = {step.name: step for step in steps}
    if not isinstance(order, list | tuple) or sorted(map(str, order)) != sorted(by_name):
        raise UsageError(f"the workflow's step order {order!r} does not list each of {sorted(by_name)} once")
    return tuple(by_name[name] for name in order)

"""How many cases may fail a check of an evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import Field

from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.errors import UsageError


class Allowance(Frozen):
    """What is allowed of one check, in cases."""

    miss: int = Field(default=0, ge=0)
    """Cases that may fail."""
    drop: int = Field(default=0, ge=0)
    """Cases that may fail now though they passed in the experiment compared with. Fixed ones make up for nothing."""


def allowances(allow: Mapping[str, object] | None, scorers: Collection[str]) -> dict[str, Allowance]:
    """What is allowed of each scorer, in the order of `scorers`. A number n stands for `{"miss": n}`.

    Raises:
        UsageError: a name is not a scorer's, or a value is not a count of cases; the message names it.
    """
    if allow is None:
        allow = {}
    if not isinstance(allow, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are people's scripts
        raise UsageError(
            f'allow: {_shown(allow)} is not a mapping; give one such as {{"tests": {{"miss": 1, "drop": 0}}}}'
        )
    for name in allow:
        if name not in scorers:
            raise UsageError(f"allow: {name!r} is not a scorer{nearest(str(name), scorers)}")
    return {name: _allowance(name, allow.get(name, 0)) for name in scorers}


def _allowance(name: str, value: object) -> Allowance:
    if not isinstance(value, Mapping):
        return Allowance(miss=_count(f"allow.{name}", value))
    for key in value:
        if key not in Allowance.model_fields:
            raise UsageError(f"allow.{name}: unknown key {key!r}{nearest(str(key), Allowance.model_fields)}")
    return Allowance(**{str(key): _count(f"allow.{name}.{key}", count) for key, count in value.items()})


def _count(place: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(
            f'{place}: {_shown(value)} is not a count of cases; give 0 or more, or {{"miss": 1, "drop": 0}} for a check'
        )
    return value


def _shown(value: object) -> str:
    return excerpt(repr(value), 60)

"""Modules under another clock and with other chance, so that what depends on them differs, and can be refused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from trunchray.adapters.sandbox.deno import HOSTS

REMEDY = "it depends on the clock or on chance, and must be written as plain data"


@dataclass(frozen=True)
class Surroundings:
    """What a module sees: what its clock shows first, how long it seems to have run, and where chance begins.

    `start` is in milliseconds since 1970, `uptime` in milliseconds.
    """

    start: int
    uptime: int
    seed: int


# The clock of the first run is no real one either, so that what is not found is the same everywhere.
FIRST = Surroundings(start=1_577_836_800_000, uptime=1000, seed=1)
SECOND = Surroundings(start=1_612_422_061_000, uptime=25_201_000, seed=99)


def drifted(code: bytes, seen: Surroundings) -> bytes:
    """The module with code of ours before its own, which changes the clock and the chance of the realm it runs in.

    For hosts that do not do so themselves. What `node:crypto` gives stays really random, and so differs as well.
    """
    values = f"{{ start: {seen.start}, uptime: {seen.uptime}, weakRefs: true }}"
    return _PRELUDE.format(definitions=_definitions(), seed=seen.seed, seen=values).encode() + code


@cache
def _definitions() -> str:
    return (HOSTS / "drift.mjs").read_text("utf-8").replace("export function", "function")


_PRELUDE = """\
{{
{definitions}
const clock = globalThis.performance;
let state = {seed};
const random = () => {{
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 4294967296;
}};
const digit = () => Math.floor(random() * 16).toString(16);
const uuid = () => "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replaceAll("x", digit);
drift({{ now: () => clock.now(), random, uuid }}, {seen});
}}
"""

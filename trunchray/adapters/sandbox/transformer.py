"""Running a transformer: twice, each time in a process of its own, so that output that differs can be refused.

The runs differ in everything that a transformer must not depend on: clock, chance, time zone and locale. What it
returns is written by JavaScript and passes through Python unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT
from trunchray.adapters.sandbox.drifted import FIRST, SECOND, Surroundings
from trunchray.adapters.sandbox.host import out_of_memory, parts, reading, started
from trunchray.adapters.sandbox.process import Bounds, CallTimeout, ProcessFailure, ReplyTooLarge
from trunchray.core.case import MAX_CASES

_HOST = "transform_host.mjs"
_BOUNDS = Bounds(heap_mb=1024, cpu_seconds=150, max_reply=1 << 29, pipe_bytes=1 << 20)
_DEADLINE = 60.0  # seconds
_SHOWN = 100  # characters of a case that differs


@dataclass(frozen=True)
class SourceText:
    """A source as a transformer gets it. `content` is UTF-8; `path` is relative to the repository root."""

    name: str
    path: str
    content: bytes
    sha256: str


@dataclass(frozen=True)
class TransformFlaw:
    """Why a transformer is refused: `index` is the returned case, from 0, or None; `path` is a field in it.

    Without an index, `path` is a field of the module's default export, or "".
    """

    index: int | None
    path: str
    message: str


@dataclass(frozen=True)
class Transformed:
    """What a transformer made: `lines` are the cases as `JSON.stringify` writes them, each ended by a line feed.

    The prompts are trimmed; nothing else about the cases has been checked. With `flaws` there is nothing else.
    """

    name: str = ""
    lines: bytes = b""
    flaws: tuple[TransformFlaw, ...] = ()


_ELSEWHERE = {**SANDBOX_ENVIRONMENT, "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8"}
"""The environment of the second run."""


async def transform(code: bytes, sources: Sequence[SourceText], *, deadline: float = _DEADLINE) -> Transformed:
    """Run the bundled module twice, each time for at most `deadline` seconds, and compare.

    Raises:
        SandboxError: "start_failed", when Deno could not be started.
    """
    first = await _run(code, sources, FIRST, SANDBOX_ENVIRONMENT, deadline)
    if first.flaws:
        return first
    second = await _run(code, sources, SECOND, _ELSEWHERE, deadline)
    if second.flaws:
        return Transformed(flaws=tuple(_only_then(flaw) for flaw in second.flaws))
    flaw = _difference(first, second)
    return first if flaw is None else Transformed(flaws=(flaw,))


async def _run(
    code: bytes, sources: Sequence[SourceText], seen: Surroundings, environment: Mapping[str, str], deadline: float
) -> Transformed:
    process = await started(_HOST, _BOUNDS, what="Deno", environment=environment)
    head = {
        "sources": [{"name": source.name, "path": source.path, "sha256": source.sha256} for source in sources],
        **asdict(seen),
        "maxCases": MAX_CASES,
    }
    try:
        answer, lines = parts(await process.call(json.dumps(head).encode() + b"\n" + code, deadline))
        for source in sources if not answer.get("flaws") else ():
            answer, lines = parts(await process.call(source.content, deadline))
        with reading():
            flaws = tuple(_flaws(answer))
            return Transformed(flaws=flaws) if flaws else Transformed(str(answer["name"]), lines)
    except ProcessFailure as e:
        return Transformed(flaws=(TransformFlaw(None, "transform", _explained(e, deadline)),))
    finally:
        await process.close()


def _flaws(answer: dict[str, Any]) -> list[TransformFlaw]:
    outcome = answer.get("outcome")
    if not answer["flaws"] and outcome:
        return [TransformFlaw(None, "transform", _outcome(outcome, answer["detail"]))]
    return [_flaw(flaw["path"], flaw["message"], returned=outcome is not None) for flaw in answer["flaws"]]


def _outcome(outcome: str, detail: Any) -> str:
    match outcome:
        case "no_array":
            return f"must return an array of cases, but returned {detail}"
        case "too_many":
            return f"returned {detail:,} cases; a release holds at most {MAX_CASES:,}"
        case "threw":
            return f"threw {detail}"
        case "out_of_memory":
            return f"needs more than {_BOUNDS.heap_mb} MB of memory: {detail}"
        case "unreadable":
            return f"returned something that cannot be read: {detail}"
        case _:
            return str(detail)


def _flaw(path: str, message: str, *, returned: bool) -> TransformFlaw:
    """`[3].data.x` is a field of the fourth returned case."""
    if not returned:
        return TransformFlaw(None, path, message)
    place = re.fullmatch(r"\[(\d+)\]\.?(.*)", path, re.DOTALL)
    if place is None:
        return TransformFlaw(None, "transform", f"returned an array that {message}")
    return TransformFlaw(int(place[1]), place[2], message)


def _only_then(flaw: TransformFlaw) -> TransformFlaw:
    remedy = "the second of two runs failed, so it depends on the time, on chance, on the time zone or on the locale"
    return TransformFlaw(flaw.index, flaw.path, f"{flaw.message} ({remedy})")


def _explained(failure: ProcessFailure, deadline: float) -> str:
    match failure:
        case CallTimeout():
            return f"did not end within {deadline:g} s"
        case ReplyTooLarge():
            return f"returned more than {_BOUNDS.max_reply >> 20} MB of JSON"
        case _ if out_of_memory(failure):
            return f"needs more than {_BOUNDS.heap_mb} MB of memory"
        case _:
            return f"ended its process ({failure}): {failure.log[-300:]}"


def _difference(first: Transformed, second: Transformed) -> TransformFlaw | None:
    """The first case that two runs did not return alike; None when there is none."""
    if first.name != second.name:
        return TransformFlaw(None, "name", f"differs between two runs: {first.name!r}, then {second.name!r}")
    if first.lines == second.lines:
        return None
    one, other = first.lines.split(b"\n"), second.lines.split(b"\n")
    index = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)) - 1)
    a, b = one[index].decode(errors="replace"), other[index].decode(errors="replace")
    if not a or not b:
        message = f"returned {len(one) - 1:,} cases, and {len(other) - 1:,} when it ran again; {_REMEDY}"
        return TransformFlaw(None, "transform", message)
    return TransformFlaw(index, "", f"case {_id(a)} differs between two runs: {_apart(a, b)}; {_REMEDY}")


_REMEDY = "a transformer must not depend on the time, on chance, on the time zone or on the locale"


def _id(case: str) -> str:
    try:
        value: Any = json.loads(case)
    except (ValueError, RecursionError):
        value = None
    return repr(value["id"]) if isinstance(value, dict) and "id" in value else "without an id"


def _apart(a: str, b: str) -> str:
    """Both texts from shortly before the place where they part, cut."""
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = 0 if start < _SHOWN * 3 // 4 else start - _SHOWN // 4
    return ", then ".join(_cut(text, start) for text in (a, b))


def _cut(text: str, start: int) -> str:
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")

"""Looking at the tools of a bundled module while a release is compiled, in processes as tools run in.

There are two, with another clock and other chance, so that a tool that differs can be refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.sandbox.difference import first_difference
from trunchray.adapters.sandbox.drifted import FIRST, REMEDY, SECOND, drifted
from trunchray.adapters.sandbox.host import explained, reading
from trunchray.adapters.sandbox.process import ProcessFailure
from trunchray.adapters.sandbox.tool_host import BadModule, loaded

DEADLINE = 10.0
"""Seconds that a module may take to be evaluated and to give the schemas of its tools."""

_HEAP_MB = 256


@dataclass(frozen=True)
class FoundTool:
    """A tool as its module exports it. `description` and `schema` are None when there is a flaw in them."""

    name: str
    description: str | None
    schema: dict[str, JsonValue] | None


@dataclass(frozen=True)
class ToolFlaw:
    """What is wrong with a field of a tool, or with the whole tool when `field` is "".

    Without a tool it is about the export that `field` names, or about the whole module.
    """

    tool: str
    field: str
    message: str


@dataclass(frozen=True)
class ToolInspection:
    """`tools` are those that exist, flawed ones included, in the order of the author's keys."""

    tools: tuple[FoundTool, ...] = ()
    flaws: tuple[ToolFlaw, ...] = ()


async def inspect_tools(code: bytes, *, deadline: float = DEADLINE) -> ToolInspection:
    """Evaluate a bundled tool module twice, each time in a process of its own.

    A module that throws, hangs or ends its process has a flaw that says so, and so has what differs.

    Raises:
        SandboxError: Deno cannot be started.
    """
    first = await _look(drifted(code, FIRST), deadline)
    if first.flaws:
        return first
    return replace(first, flaws=tuple(_differences(first, await _look(drifted(code, SECOND), deadline))))


async def _look(code: bytes, deadline: float) -> ToolInspection:
    try:
        process, reports = await loaded([code], heap_mb=_HEAP_MB, deadline=deadline, examine=True)
        await process.close()
        return _read(reports)
    except BadModule as e:
        return ToolInspection(flaws=(ToolFlaw("", "", str(e)),))
    except ProcessFailure as e:
        return ToolInspection(flaws=(ToolFlaw("", "", explained(e, deadline)),))


def _read(reports: list[dict[str, Any]]) -> ToolInspection:
    """The report on the only module."""
    with reading():
        (report,) = reports
        return ToolInspection(
            tuple(FoundTool(tool["name"], tool["description"], tool["inputSchema"]) for tool in report["tools"]),
            tuple(ToolFlaw(*flaw) for flaw in report["flaws"]),
        )


def _differences(first: ToolInspection, second: ToolInspection) -> Iterator[ToolFlaw]:
    """What a second run shows of tools without flaws; nothing when both are alike."""
    if second.flaws:
        yield from (
            replace(each, message=f"{each.message} (only in the second run; {REMEDY})") for each in second.flaws
        )
        return
    one, other = ({tool.name: None for tool in each.tools} for each in (first, second))
    if [*one] != [*other]:
        yield ToolFlaw("", "tools", _differ({**one}, {**other}))
        return
    for before, after in zip(first.tools, second.tools, strict=True):
        if before.description != after.description:
            yield ToolFlaw(before.name, "description", _differ(before.description, after.description))
        if json.dumps(before.schema) != json.dumps(after.schema):
            yield ToolFlaw(before.name, "inputSchema", _differ(before.schema, after.schema))


def _differ(one: JsonValue, other: JsonValue) -> str:
    path, a, b = first_difference(one, other)
    return f"{f'differs at {path}' if path else 'differs'} between two runs: {a}, then {b}; {REMEDY}"

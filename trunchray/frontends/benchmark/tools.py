"""The tools of a benchmark: found in their modules, looked at, and ready to become part of the release."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trunchray.adapters.sandbox.esbuild import Bundle
from trunchray.adapters.sandbox.tool_inspection import FoundTool, ToolFlaw, ToolInspection, inspect_tools
from trunchray.core.case import TOOL_NAME_PATTERN
from trunchray.core.release import ReleaseTool
from trunchray.errors import Problem
from trunchray.frontends.benchmark.position import Position, shown, step_into
from trunchray.frontends.benchmark.staging import Stage
from trunchray.frontends.benchmark.tool_entries import bundle_tools

_AT_ONCE = 2
"""Modules that are looked at together, each in a process of its own."""


@dataclass(frozen=True)
class Tools:
    """The tools of the release, in the order of their modules and of the authors' keys.

    `modules` maps hashes to code. `names` are all names that cases may use, flawed tools included; None when a module
    could not be looked at, so that nobody can say which names exist.
    """

    tools: tuple[ReleaseTool, ...]
    modules: dict[str, bytes]
    names: frozenset[str] | None


async def read_tools(stage: Stage, modules: Sequence[str], found: list[Problem]) -> Tools:
    """The tools of these modules; everything wrong with them goes to `found`.

    Raises:
        SandboxError: Deno cannot be started.
    """
    bundles = bundle_tools(stage, modules, found)
    turn = asyncio.Semaphore(_AT_ONCE)
    inspections = await asyncio.gather(*(_look(bundles[path], turn) for path in bundles))
    looked = dict(zip(bundles, inspections, strict=True))
    for path, inspection in looked.items():
        found += _flaws(Position(path), inspection)
    found += _same_names(looked)
    tools = [
        release
        for path, inspection in looked.items()
        for tool in inspection.tools
        if (release := _frozen(tool, bundles[path])) is not None
    ]
    return Tools(tuple(tools), {bundle.sha256: bundle.code for bundle in bundles.values()}, _names(modules, looked))


async def _look(bundle: Bundle, turn: asyncio.Semaphore) -> ToolInspection:
    async with turn:
        return await inspect_tools(bundle.code)


def _flaws(place: Position, inspection: ToolInspection) -> list[Problem]:
    problems = [_at(place, flaw).problem(flaw.message) for flaw in inspection.flaws]
    return problems + [
        place.at(step_into("tools", tool.name)).problem(
            f"{shown(tool.name)} is not a tool name: start with a letter or '_', go on with letters, digits, '_' and "
            "'-', at most 64 characters"
        )
        for tool in inspection.tools
        if not re.fullmatch(TOOL_NAME_PATTERN, tool.name)
    ]


def _at(place: Position, flaw: ToolFlaw) -> Position:
    return place.at(step_into("tools", flaw.tool)).at(flaw.field) if flaw.tool else place.at(flaw.field)


def _same_names(looked: dict[str, ToolInspection]) -> list[Problem]:
    first: dict[str, str] = {}
    return [
        Position(path)
        .at(step_into("tools", tool.name))
        .problem(f"a tool of this name is already in {earlier}; tool names are unique in the whole release")
        for path, inspection in looked.items()
        for tool in inspection.tools
        if (earlier := first.setdefault(tool.name, path)) != path
    ]


def _frozen(tool: FoundTool, bundle: Bundle) -> ReleaseTool | None:
    """The tool as the release keeps it; None for a flawed one, which has been told of."""
    if tool.description is None or tool.schema is None or not re.fullmatch(TOOL_NAME_PATTERN, tool.name):
        return None
    return ReleaseTool(name=tool.name, description=tool.description, input_schema=tool.schema, module=bundle.sha256)


def _names(modules: Sequence[str], looked: dict[str, ToolInspection]) -> frozenset[str] | None:
    whole = all(path in looked and not any(not flaw.tool for flaw in looked[path].flaws) for path in modules)
    return frozenset(tool.name for inspection in looked.values() for tool in inspection.tools) if whole else None

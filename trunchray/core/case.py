"""A case: the smallest thing that is executed and scored on its own.

It has two halves. `CaseInput` is all that an agent is ever given; the rest (`data`, `checks`, `source`) is for grading
and for people. A function that takes a `CaseInput` cannot leak an expected answer.
"""

from __future__ import annotations

import json

from pydantic import Field, JsonValue

from trunchray.core.checks import Check
from trunchray.core.frozen import CamelFrozen

ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,119}$"
"""Authored names of cases, evals, jobs and sources."""

TOOL_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
"""What every provider accepts as a function name."""

MAX_CASES = 25_000


class CaseInput(CamelFrozen):
    """The public half: what the agent is given."""

    prompt: str
    structured: bool = False
    """The prompt is the JSON text of an input that is no string; Python tasks are given the value."""
    system_prompt: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def value(self) -> JsonValue:
        """The input as a Python task is given it; a value of its own each time, which the task may change."""
        return json.loads(self.prompt) if self.structured else self.prompt


class Origin(CamelFrozen):
    """Where a case was authored: a file relative to the benchmark directory, and its row there.

    `row` counts from 1: the place in an inline array, the line of a JSONL file or the record of a CSV file; None for a
    one-prompt eval.
    """

    path: str
    row: int | None = None


class Case(CamelFrozen):
    """One compiled case. Inheritance from its eval has already happened."""

    id: str = Field(pattern=ID_PATTERN)
    eval_id: str = Field(pattern=ID_PATTERN)
    title: str
    description: str = ""
    input: CaseInput
    data: JsonValue = None
    checks: dict[str, Check]
    source: Origin

"""What is observed of one run."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from trunchray.core.record import StepRecord


class Steps:
    """The steps of one run, in the order in which they began. Calls of tools are told apart by id.

    Lists and dicts are copied as they are at that time, as the task may change them later.
    """

    def __init__(self) -> None:
        self._records: list[StepRecord] = []
        self._open: dict[str, int] = {}

    def add(self, record: StepRecord) -> None:
        """A whole step."""
        self._records.append(record)

    def model(self) -> None:
        """A call of a model."""
        self.add(StepRecord("llm"))

    def start(self, call_id: object, name: str | None, input: Any = None) -> None:
        """A call of a tool, which is a step even if it never ends. Without a `call_id` its end cannot be recorded."""
        if call_id is not None:
            self._open[str(call_id)] = len(self._records)
        self.add(StepRecord("tool", name, snapshot(input)))

    def done(self, call_id: object, output: Any = None, error: str | None = None) -> bool:
        """The end of a call that has begun; whether there is one."""
        place = self._open.pop(str(call_id), None)
        if place is None:
            return False
        self._records[place] = replace(self._records[place], output=snapshot(output), error=error)
        return True

    def records(self) -> tuple[StepRecord, ...]:
        """All steps so far."""
        return tuple(self._records)


def snapshot(value: Any) -> Any:
    """A copy of a list or mapping with all that it holds, if that can be copied; anything else as it is."""
    if not isinstance(value, list | dict):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:
        return value

"""Steps as they are stored with a trial."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import JsonValue

from trunchray.adapters.models.json_text import well_formed
from trunchray.agents.python.text import LONGEST, printed
from trunchray.core.record import StepRecord
from trunchray.core.trial import Step

LONGEST_FIELD = 100_000
"""Characters of the input, and of the output, of one step that are stored."""


def stored_steps(records: Iterable[StepRecord]) -> tuple[Step, ...]:
    """The steps of a run, long ones cut, up to 4,000,000 characters together; then it says how many there are."""
    steps: list[Step] = []
    every, room = tuple(records), LONGEST
    for record in every:
        shown, length = _shown(record)
        room -= length
        if room < 0:
            return (*steps, Step(kind="limit", name="stored_steps", input=len(every)))
        steps.append(Step(kind="observed", name=well_formed(record.name or record.kind), output=shown))
    return tuple(steps)


def _shown(record: StepRecord) -> tuple[dict[str, JsonValue], int]:
    """A step as JSON, and about how many characters that takes."""
    try:
        found = record.to_json()
    except Exception as e:  # a value that cannot even be printed
        found = {"kind": record.kind, "error": f"cannot be shown: {printed(e)}"}
    fields = {name: _bounded(value) for name, value in found.items()}
    return {name: value for name, (value, _) in fields.items()}, sum(length for _, length in fields.values())


def _bounded(value: JsonValue) -> tuple[JsonValue, int]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_FIELD:
        return value, len(text)
    return f"{text[:LONGEST_FIELD]}… [cut: {len(text)} characters]", LONGEST_FIELD

"""What is stored of a run: well-formed text, and not without end. Checks are given all of it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import JsonValue

from trunchray.core.plain import as_text, plain, printed
from trunchray.core.record import OutputForm, StepRecord
from trunchray.core.trial import Step
from trunchray.core.well_formed import well_formed

LONGEST = 4_000_000
"""Characters of an output, and of all steps of a run together."""
LONGEST_FIELD = 100_000
"""Characters of the input, and of the output, of one step."""


def stored_output(value: object) -> tuple[str, OutputForm]:
    """An output as text, and how that is to be read: what is a string in JSON as it is, all else as canonical JSON.

    What has no JSON form is what Python prints of it, and so is JSON that had to be cut.
    """
    try:
        found = value if isinstance(value, str) else plain(value)
        text = well_formed(as_text(found))
    except ValueError:
        return _cut(well_formed(printed(value)), LONGEST), "repr"
    if isinstance(found, str):
        return _cut(text, LONGEST), "text"
    return _cut(text, LONGEST), "json" if len(text) <= LONGEST else "repr"


def stored_steps(records: Iterable[StepRecord]) -> tuple[Step, ...]:
    """The steps of a run, long ones cut, up to 4,000,000 characters together; then it says how many there are."""
    steps: list[Step] = []
    every, room = tuple(records), LONGEST
    for record in every:
        fields = {name: _bounded(value) for name, value in record.to_json().items()}
        room -= sum(length for _, length in fields.values())
        if room < 0:
            return (*steps, Step(kind="limit", name="stored_steps", input=len(every)))
        shown = {name: value for name, (value, _) in fields.items()}
        steps.append(Step(kind="observed", name=well_formed(record.name or record.kind), output=shown))
    return tuple(steps)


def _bounded(value: JsonValue) -> tuple[JsonValue, int]:
    """A field of a step, and about how many characters it takes."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (value, len(text)) if len(text) <= LONGEST_FIELD else (_cut(text, LONGEST_FIELD), LONGEST_FIELD)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… [cut: {len(text)} characters]"

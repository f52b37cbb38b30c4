"""What agents tell of themselves, whatever they tell."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunchray.agents.python.events import EventReader
from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.steps import Steps

IDS = st.sampled_from(["1", "2", 3])
NAMES = st.sampled_from(["search", "refund"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def event(type: str, **data: Any) -> dict[str, Any]:
    return {"type": type, "data": data}


EVENTS = st.one_of(
    st.builds(
        lambda calls: event(
            "inference.done",
            turn={"content": [{"type": "tool_call", "id": call, "name": name} for call, name in calls]},
        ),
        st.lists(st.tuples(IDS, NAMES), max_size=2),
    ),
    st.builds(lambda call, name: event("inference.tool_call.end", callId=call, name=name), IDS, NAMES),
    st.builds(lambda call, name: event("tool.start", call={"id": call, "name": name}), IDS, NAMES),
    st.builds(
        lambda call, error: event("tool.done", result={"callId": call, "content": "c", "isError": error}),
        IDS,
        st.booleans(),
    ),
)
TYPES = st.sampled_from(["inference.done", "inference.tool_call.end", "tool.start", "tool.done", "other"])
KEYS = st.sampled_from(["data", "call", "result", "turn", "content", "id", "callId", "name", "isError"])


def read(events: list[Any]) -> list[tuple[str, str | None]]:
    steps = Steps()
    reader = EventReader(steps)
    for each in events:
        reader.read(each)
    return [(record.kind, record.name) for record in steps.records()]


@given(st.lists(EVENTS, max_size=12))
def test_every_model_call_and_every_call_of_a_tool_is_a_step(events: list[Any]) -> None:
    """There is a step for each turn and for each start, and beyond those at most one for each end that is named."""
    kinds = [each["type"] for each in events]
    found = read(events)
    turns = sum(kind == "llm" for kind, _ in found)
    assert turns == kinds.count("inference.done")
    calls = len(found) - turns
    assert kinds.count("tool.start") <= calls <= kinds.count("tool.start") + kinds.count("tool.done")
    assert all(name is None if kind == "llm" else name in {"search", "refund"} for kind, name in found)


@given(st.lists(EVENTS, max_size=12))
def test_an_end_that_nothing_began_or_named_changes_nothing(events: list[Any]) -> None:
    """A stranger's end can stand anywhere without being taken for a step."""
    stranger = event("tool.done", result={"callId": "stranger", "content": "c"})
    mixed = [part for each in events for part in (stranger, each)]
    assert read(mixed) == read(events)


@given(
    st.lists(
        st.fixed_dictionaries({"type": TYPES}, optional={}).flatmap(
            lambda base: st.dictionaries(KEYS, JSON, max_size=4).map(lambda more: {**more, **base})
        ),
        max_size=6,
    )
)
def test_no_event_is_too_odd_to_be_read(events: list[Any]) -> None:
    """Events of the right type and any content at all are read, or fail the run with a reason."""
    with suppress(RunFailed):
        read(events)

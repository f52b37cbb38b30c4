"""Whatever a coding tool prints."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunchray.core.canary import Canary
from trunchray.core.harness_events import _READERS
from trunchray.core.transcript import TranscriptReader

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "message",
    "usage",
    "stats",
    "event",
    "delta",
    "item",
    "part",
    "data",
    "content",
    "tool_call",
    "toolRequests",
    "tokens",
    "role",
]
EVENTS = st.fixed_dictionaries({"type": st.sampled_from(["assistant", *_READERS])}).flatmap(
    lambda base: st.dictionaries(
        st.sampled_from(FIELDS),
        JSON | st.dictionaries(st.sampled_from([*FIELDS, "text", "name", "id", "state", "cache"]), JSON, max_size=4),
        max_size=4,
    ).map(lambda more: base | more)
)


@given(st.lists(EVENTS, max_size=4), st.binary(max_size=50))
def test_nothing_that_a_tool_prints_is_an_error(events: list[dict[str, Any]], noise: bytes):
    """Whatever its events hold, a transcript is read, and what comes of it can be stored."""
    reader = TranscriptReader(Canary("TRIGGER-LOADED-0badcafe"))
    for event in events:
        reader.feed(json.dumps(event).encode() + b"\n")
    reader.feed(noise)
    found = reader.end()
    for call in found.calls:
        call.model_dump_json()
    found.message.encode()

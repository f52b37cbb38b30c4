"""The tool calls that an author writes to try an evaluator."""

from __future__ import annotations

import pytest

from trunchray.core.trial import ToolCall
from trunchray.errors import UsageError
from trunchray.frontends.benchmark.tryout import read_calls


def test_calls_are_read_as_a_trace_has_them():
    """Ids are given out in order; input is an empty object when nothing is said; output and error are taken over."""
    calls = read_calls(
        b'[{"toolName":"a"},{"toolName":"b","input":{"x":1},"toolCallId":"z","output":[1],"error":"no"}]', "calls.json"
    )
    assert calls == (
        ToolCall(tool_call_id="call-1", tool_name="a", input={}),
        ToolCall(tool_call_id="z", tool_name="b", input={"x": 1}, output=[1], error="no"),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "calls.json: Input should be a valid array; write a JSON array of"),
        (b'[{"toolName":"a","args":{}}]', "calls.json: 0.args: Extra inputs are not permitted; write"),
        (b'[{"input":{}}]', "calls.json: 0.toolName: Field required; write"),
        (b"[", "calls.json: Invalid JSON"),
    ],
)
def test_anything_else_is_refused(content, message):
    """The message names the file, the field and the form that is expected."""
    with pytest.raises(UsageError) as refused:
        read_calls(content, "calls.json")
    assert str(refused.value).startswith(message)

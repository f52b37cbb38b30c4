"""Recorded outputs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunchray.adapters.models.base import RequestedCall
from trunchray.adapters.models.replay import RecordedOutput, Replay, load_replay
from trunchray.core.trial import Usage
from trunchray.errors import UsageError


def load(*rows: dict[str, Any]) -> Replay:
    return load_replay("\n".join(json.dumps(row) for row in rows).encode(), "outputs.jsonl")


def only(row: dict[str, Any]) -> RecordedOutput:
    found = load({"case_id": "a", **row}).find("a", 1)
    assert found is not None
    return found


def test_row_without_attempt_serves_every_attempt() -> None:
    """An unnumbered row is played for all attempts that have no row of their own."""
    replay = load({"case_id": "a", "output": "any"}, {"case_id": "a", "attempt": 2, "output": "second"})
    assert [getattr(replay.find("a", attempt), "text", None) for attempt in (1, 2, 3)] == ["any", "second", "any"]
    assert replay.find("b", 1) is None
    assert len(replay) == 2


def test_numbered_rows_serve_their_attempt_only() -> None:
    """A row of another attempt is never taken instead."""
    assert load({"case_id": "a", "attempt": 1, "output": "x"}).find("a", 2) is None


def test_attempts_are_played_in_turn_where_nobody_knows_them() -> None:
    """The n-th request for a case plays the n-th recorded attempt, then starts again."""
    replay = load(*({"case_id": "a", "attempt": n, "output": str(n)} for n in (3, 1)))
    assert [replay.nth("a", n) for n in (1, 2, 3, 4)] == [1, 3, 1, 3]
    assert replay.nth("b", 5) == 5


def test_all_that_a_row_may_say() -> None:
    """Tool calls, finish reason and usage are taken over; columns of other tools are ignored."""
    row = only(
        {
            "output": "done",
            "attempt": None,
            "tool_calls": [
                {"name": "add", "arguments": {"a": 1}},
                {"toolName": "sub", "input": '{"a":', "toolCallId": "c9", "output": 3},
                {"function": {"name": "now", "arguments": "{}"}, "type": "function"},
                {"name": "ping"},
            ],
            "finish_reason": "tool_calls",
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "reasoning_tokens": 1, "total_tokens": 7},
            "model": "gpt",
            "label": {"nested": [1]},
        }
    )
    assert row == RecordedOutput(
        text="done",
        finish_reason="tool-calls",
        tool_calls=(
            RequestedCall("call_1", "add", '{"a":1}'),
            RequestedCall("c9", "sub", '{"a":'),
            RequestedCall("call_3", "now", "{}"),
            RequestedCall("call_4", "ping", "{}"),
        ),
        usage=Usage(input_tokens=3, output_tokens=4, reasoning_tokens=1),
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"output": ""}, "stop"),
        ({"output": "x", "finish_reason": None}, "stop"),
        ({"output": None, "tool_calls": [{"name": "f"}]}, "tool-calls"),
        ({"output": "x", "finish_reason": "content_filter"}, "content-filter"),
        ({"output": "x", "finish_reason": "length"}, "length"),
        ({"output": "x", "finish_reason": "eos"}, "other"),
    ],
)
def test_finish_reasons(row: dict[str, Any], reason: str) -> None:
    """Any provider's word is understood; without one, calls decide."""
    assert only(row).finish_reason == reason


def test_odd_text_is_made_well_formed() -> None:
    """Half an emoji, a byte order mark, CRLF, blank lines and no newline at the end are no reason to refuse a file."""
    content = b'\xef\xbb\xbf{"case_id": "a", "output": "x\\ud83d"}\r\n\r\n{"case_id": "b", "output": "\xff"}'
    replay = load_replay(content, "outputs.jsonl")
    assert [getattr(replay.find(case, 1), "text", None) for case in "ab"] == ["x\ufffd", "\ufffd"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "outputs.jsonl:2: not JSON"),
        ("[1]", "outputs.jsonl:2: '[1]' is not an object"),
        ('{"output": "x"}', "outputs.jsonl:2: case_id: Field required"),
        ('{"case_id": "b"}', "outputs.jsonl:2: output: Field required"),
        ('{"case_id": "b", "output": null}', 'outputs.jsonl:2: output: null says nothing; write ""'),
        ('{"case_id": "b", "output": 5}', "outputs.jsonl:2: output: Input should be a valid string"),
        ('{"case_id": "b", "output": "", "attempt": 0}', "outputs.jsonl:2: attempt: "),
        ('{"case_id": "b", "output": "", "attempt": true}', "outputs.jsonl:2: attempt: "),
        ('{"case_id": "b", "output": "", "tool_calls": [{}]}', "outputs.jsonl:2: tool_calls.0.name: Field required"),
        ('{"case_id": "b", "output": "", "usage": 5}', "outputs.jsonl:2: usage: "),
        ('{"case_id": "a", "output": "y"}', "outputs.jsonl: lines 1 and 2 are both for case 'a'; keep one"),
    ],
)
def test_bad_rows_name_their_place(line: str, message: str) -> None:
    """A row that cannot be played is refused with file, line and field."""
    with pytest.raises(UsageError) as caught:
        load_replay(b'{"case_id": "a", "output": "x"}\n' + line.encode(), "outputs.jsonl")
    assert str(caught.value).startswith(message)


def test_same_attempt_twice_is_refused() -> None:
    """Two rows for one attempt are refused with both lines and the attempt."""
    row = {"case_id": "a", "attempt": 2, "output": "x"}
    with pytest.raises(UsageError, match="lines 1 and 2 are both for case 'a', attempt 2"):
        load(row, row)


def test_empty_file_is_refused() -> None:
    """A file without rows says what a row looks like."""
    with pytest.raises(UsageError, match="no recorded outputs"):
        load_replay(b"\n\n", "outputs.jsonl")


@pytest.mark.parametrize("count", [-1, 10**25, 2**53 + 1, 3.0, "3", True, None])
def test_impossible_counts_of_tokens_are_unknown(count: Any) -> None:
    """What cannot be a number of tokens is as if the file did not say, and the row is played."""
    usage = {"input_tokens": count, "output_tokens": 2**53}
    assert only({"output": "x", "usage": usage}).usage == Usage(output_tokens=2**53)

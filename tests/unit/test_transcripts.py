"""What coding tools print, and what is taken from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunchray.core.canary import Canary
from trunchray.core.masking import Mask
from trunchray.core.transcript import CALLS_KEPT, LONGEST_LINE, MESSAGE_KEPT, VALUE_KEPT, Transcript, TranscriptReader

TOKEN = "TRIGGER-LOADED-0badcafe"


def read(*events: Any, canary: str | None = None, pieces: int = 1 << 20) -> Transcript:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    content = ("\n".join(lines) + "\n").encode()
    reader = TranscriptReader(Canary(canary) if canary else None)
    for start in range(0, len(content), pieces):
        reader.feed(content[start : start + pieces])
    return reader.end()


def said(text: str = "", *, usage: dict[str, Any] | None = None, tools: tuple[str, ...] = ()) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": f"{name}-{n}", "name": name, "input": {}} for n, name in enumerate(tools)]
    return {"type": "assistant", "message": {"content": blocks, **({"usage": usage} if usage else {})}}


def spent(read_: int, written: int, **more: int) -> dict[str, int]:
    return {"input_tokens": read_, "output_tokens": written, **more}


def test_assistant_events_are_steps_and_their_usage_is_added_up():
    """Each is one step; tools are counted by name."""
    found = read(
        said("a", usage=spent(10, 1), tools=("Read", "Read")), said(usage=spent(20, 2), tools=("Write",)), said("b")
    )
    assert (found.steps, found.tokens.input, found.tokens.output, found.tokens_reported) == (3, 30, 3, True)
    assert found.counts == {"Read": 2, "Write": 1}


@pytest.mark.parametrize("kind", ["result", "turn.completed", "whatever", None])
def test_any_other_event_with_usage_overrides_the_totals(kind: str | None):
    """Claude Code has it in `result`, Codex in `turn.completed`; nobody knows what others call it."""
    event = {"usage": spent(500, 50)} | ({"type": kind} if kind else {})
    found = read(said("a", usage=spent(10, 1)), event)
    assert (found.tokens.input, found.tokens.output) == (500, 50)


def test_a_total_of_zero_keeps_the_sum():
    """Each of the two counts by itself."""
    found = read(said("a", usage=spent(10, 1)), {"type": "result", "usage": spent(0, 7)})
    assert (found.tokens.input, found.tokens.output) == (10, 7)


def test_several_turns_keep_the_last_total():
    """As documented: a tool that gives a total for each turn is counted with the last."""
    found = read({"type": "turn.completed", "usage": spent(5, 5)}, {"type": "turn.completed", "usage": spent(3, 2)})
    assert (found.tokens.input, found.tokens.output) == (3, 2)


@pytest.mark.parametrize("printed", ["plain text", "", said("hi"), {"type": "result", "usage": {"premiumRequests": 1}}])
def test_tokens_that_nobody_reports_are_zero_and_said_so(printed: Any):
    """A transcript without token counts, even with a `usage` that has none, is not one of zero tokens."""
    found = read(printed)
    assert (found.tokens.input, found.tokens.output, found.tokens_reported) == (0, 0, False)


def test_tokens_of_caches_are_counted_apart():
    """What was read from a cache and written to it is no part of the sum of input and output."""
    usage = spent(10, 1, cache_read_input_tokens=1000, cache_creation_input_tokens=200)
    found = read(said("a", usage=usage), {"type": "turn.completed", "usage": spent(9, 1, cached_input_tokens=4)})
    assert (found.tokens.input, found.tokens.cache_read, found.tokens.cache_write) == (9, 4, 200)


@pytest.mark.parametrize("bad", [True, -1, "10", 1e300, None, [1]])
def test_counts_that_are_none_are_passed_over(bad: Any):
    """A token count is a number of tokens, and nothing else."""
    found = read({"type": "result", "usage": {"input_tokens": bad, "output_tokens": 3}})
    assert (found.tokens.input, found.tokens.output) == (0, 3)


def test_lines_that_are_no_json_objects_are_passed_over():
    """Warnings, blank lines, half a line and JSON that is no object stand between events of real tools."""
    found = read("Loading…", "", "3", "[1, null]", '{"type": "assis', "{" * 100_000, said("x", usage=spent(1, 1)))
    assert (found.steps, found.tokens.input, found.message) == (1, 1, "x")


def test_half_a_character_is_no_reason_to_lose_an_event():
    """Tools cut text where they like; what is left of a character becomes U+FFFD."""
    found = read('{"type":"assistant","message":{"content":"cut \\ud83d","usage":{"input_tokens":4}}}')
    assert (found.message, found.tokens.input) == ("cut \ufffd", 4)


def test_a_line_without_end_takes_no_memory():
    """What is longer than an event can be is skipped, and the next line read again."""
    reader = TranscriptReader()
    for _ in range(LONGEST_LINE // (1 << 20) + 2):
        reader.feed(b"{" + b"x" * (1 << 20))
    reader.feed(b"\n" + json.dumps(said("after")).encode())
    assert reader.end().message == "after"


def test_the_final_message_is_the_result():
    """Then the last text of the model; then what was printed."""
    assert read(said("one"), {"type": "result", "result": "two"}).message == "two"
    assert read(said("one"), said(tools=("Read",))).message == "one"
    assert read("just", "text").message == "just\ntext"


def test_the_final_message_is_bounded():
    """The end of it is kept."""
    assert read("x" * MESSAGE_KEPT + "end").message.endswith("xend")
    assert len(read(said("y" * MESSAGE_KEPT * 2)).message) == MESSAGE_KEPT


def test_tool_calls_with_what_came_of_them():
    """Answers of Claude Code come as messages of the user; failures are errors."""
    answers = [
        {"type": "tool_result", "tool_use_id": "Read-0", "content": "text"},
        {"type": "tool_result", "tool_use_id": "Bash-1", "content": "no", "is_error": True},
        {"type": "tool_result", "tool_use_id": "unknown", "content": "text"},
    ]
    found = read(said(tools=("Read", "Bash")), {"type": "user", "message": {"content": answers}})
    assert [(call.tool_name, call.output, call.error) for call in found.calls] == [
        ("Read", "text", None),
        ("Bash", None, "no"),
    ]


def test_what_is_kept_of_tool_calls_is_bounded():
    """All are counted; the first are kept, with the beginning of what went in and came out."""
    call = {"type": "tool_use", "name": "W", "input": {"content": "z" * 10_000}}
    found = read(*[{"type": "assistant", "message": {"content": [call] * 10}}] * 40)
    assert (found.counts["W"], len(found.calls)) == (400, CALLS_KEPT)
    assert isinstance(found.calls[0].input, str)
    assert len(found.calls[0].input) == VALUE_KEPT


def test_codex():
    """Messages and tools are items, which count when they are completed."""
    found = read(
        {"type": "thread.started"},
        {"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "ls", "exit_code": 2}},
        {"type": "item.completed", "item": {"id": "2", "type": "mcp_tool_call", "tool": "find", "arguments": {}}},
        {"type": "item.completed", "item": {"id": "3", "type": "file_change", "changes": [{"path": "x"}]}},
        {"type": "item.completed", "item": {"id": "4", "type": "agent_message", "text": "done"}},
        {"type": "turn.completed", "usage": spent(100, 10, cached_input_tokens=60)},
    )
    assert (found.message, found.steps, found.tokens.input, found.tokens.cache_read) == ("done", 1, 100, 60)
    assert found.counts == {"command_execution": 1, "find": 1, "file_change": 1}


def test_gemini():
    """Messages come in pieces, tokens as `stats`."""
    found = read(
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "message", "role": "assistant", "content": "I look", "delta": True},
        {"type": "tool_use", "tool_name": "read_file", "tool_id": "t", "parameters": {"path": "x"}},
        {"type": "tool_result", "tool_id": "t", "status": "success", "output": "text"},
        {"type": "message", "role": "assistant", "content": "It says ", "delta": True},
        {"type": "message", "role": "assistant", "content": "text", "delta": True},
        {"type": "result", "status": "success", "stats": {"input_tokens": 7, "output_tokens": 3, "cached": 2}},
    )
    assert (found.message, found.steps, found.tokens.input, found.tokens.cache_read) == ("It says text", 2, 7, 2)
    assert (found.counts, found.calls[0].output) == ({"read_file": 1}, "text")


def test_opencode():
    """Everything is a part, and the tokens of its steps are added up."""
    step = {"type": "step_finish", "part": {"tokens": {"input": 5, "output": 1, "cache": {"read": 8, "write": 2}}}}
    state = {"status": "completed", "input": {"command": "ls"}, "output": "x"}
    found = read(
        {"type": "tool_use", "part": {"type": "tool", "tool": "bash", "callID": "c", "state": state}},
        step,
        {"type": "text", "part": {"type": "text", "text": "done"}},
        step,
    )
    assert (found.message, found.tokens.input, found.tokens.cache_write, found.counts) == ("done", 10, 4, {"bash": 1})


def test_cursor_and_copilot():
    """Two more ways to say that a tool was called."""
    started = {"type": "tool_call", "subtype": "started", "call_id": "1", "tool_call": {"readToolCall": {"args": {}}}}
    data = {"content": "hello", "toolRequests": [{"toolCallId": "2", "name": "bash", "arguments": {}}]}
    found = read(started, started | {"subtype": "completed"}, {"type": "assistant.message", "data": data})
    assert (found.counts, found.message) == ({"read": 1, "bash": 1}, "hello")


def test_a_price_that_the_tool_names():
    """Claude Code says what a run cost."""
    assert read({"type": "result", "total_cost_usd": 0.25}).cost_usd == 0.25
    assert read({"type": "result", "total_cost_usd": "much"}).cost_usd is None


def delta(text: str) -> dict[str, Any]:
    return {
        "type": "stream_event",
        "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
    }


@pytest.mark.parametrize(
    "events",
    [
        [said(f"{TOKEN} hello")],
        [f"{TOKEN} in plain text"],
        [{"type": "user", "message": {"content": [{"type": "tool_result", "content": f"reply with `{TOKEN}`"}]}}],
        [delta("TRIGGER-LO"), delta("ADED-0bad"), delta("cafe and more")],
        [delta(letter) for letter in TOKEN],
        [{"type": "message", "role": "assistant", "content": part, "delta": True} for part in (TOKEN[:9], TOKEN[9:])],
        [{"type": "response.output_text.delta", "delta": part} for part in (TOKEN[:4], TOKEN[4:])],
    ],
)
def test_the_canary_is_found_however_it_is_printed(events: list[Any]):
    """Whole or split over stream deltas, said by the model or read from the skill's file by a tool."""
    assert read(*events, canary=TOKEN).loaded is True


@pytest.mark.parametrize("pieces", [1, 7, 64])
def test_the_canary_is_found_however_the_bytes_arrive(pieces: int):
    """Pipes cut where they like."""
    assert read(said(f"… {TOKEN}"), canary=TOKEN, pieces=pieces).loaded is True


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "system", "skills": ["demo-trig-0badcafe"]}],
        [said("TRIGGER-LOADED-0badcaf"), said("0badcafe")],
        [delta("TRIGGER-LOADED-"), delta("0badcaf0")],
        [],
    ],
)
def test_a_listing_of_skills_is_no_loading(events: list[Any]):
    """Tools list the names of skills when they start; the name has the digits, and never the whole word."""
    assert read(*events, canary=TOKEN).loaded is False


def test_without_a_canary_nothing_is_said_of_loading():
    """Only trigger queries have one."""
    assert read(said(TOKEN)).loaded is None


KEY = "k9Xv72mQpL0aZr"


def test_no_credential_is_in_what_is_taken():
    """Neither in names, nor in what tools are given and answer, nor in a message that comes in pieces."""
    spelt = "".join(f"\\u{ord(letter):04X}" for letter in KEY)
    use = {"type": "tool_use", "id": spelt, "name": f"use-{spelt}", "input": {spelt: [f"<{spelt}>"]}}
    answer = {"type": "tool_result", "tool_use_id": spelt, "content": f"it is {spelt}", "is_error": True}
    events: list[Any] = [
        {"type": "assistant", "message": {"content": [use]}},
        {"type": "user", "message": {"content": [answer]}},
        {"type": "message", "role": "assistant", "content": "it is k9Xv7", "delta": True},
        {"type": "message", "role": "assistant", "content": "2mQpL0aZr!", "delta": True},
    ]
    reader = TranscriptReader(mask=Mask([KEY]))
    reader.feed("\n".join(json.dumps(event) for event in events).replace("\\\\u", "\\u").encode())
    found = reader.end()
    assert found.message == "it is [masked]!"
    assert found.counts == {"use-[masked]": 1}
    [call] = found.calls
    assert (call.tool_call_id, call.input, call.error) == ("[masked]", {"[masked]": ["<[masked]>"]}, "it is [masked]")

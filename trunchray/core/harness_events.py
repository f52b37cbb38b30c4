"""What the events mean that coding tools print, one JSON object a line.

There is no common format. Understood are those of Claude Code (also of Qwen Code and Cursor, which borrow it), Codex,
Gemini CLI, OpenCode and Copilot CLI; an event that nobody knows still counts when it has a `usage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tokens:
    """None: not said."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the model, or, when it is a `part`, the next piece of one."""

    text: str
    part: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """A piece of a message that follows as a whole."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """The model called a tool."""

    id: str
    name: str
    input: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """A tool answered."""

    id: str
    output: Any
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one message, or, when it is a `total`, of all so far."""

    tokens: Tokens
    total: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The run ended. `text` is the final message, `cost_usd` what it cost, where the tool says so."""

    text: str | None = None
    cost_usd: float | None = None


Fact = Said | Heard | Called | Answered | Spent | Ended
Event = Mapping[str, Any]


def facts(event: Event) -> Iterator[Fact]:
    """What one event tells, in its order."""
    kind = event.get("type")
    if kind == "assistant":
        yield from _assistant(_map(event, "message"))
        return
    if isinstance(event.get("usage"), Mapping):
        yield from _spent(_tokens(event["usage"]), total=True)
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read:
        yield from read(event)


def _assistant(message: Event) -> Iterator[Fact]:
    yield from _spent(_tokens(_map(message, "usage")))
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    texts = [_text(block, "text") for block in blocks if block.get("type") == "text"]
    yield Said(content if isinstance(content, str) else "".join(texts))
    for block in blocks:
        if block.get("type") == "tool_use" and (name := _text(block, "name")):
            yield Called(_text(block, "id"), name, block.get("input"))


def _user(event: Event) -> Iterator[Fact]:
    """Claude Code: what tools answered comes back as messages of the user."""
    content = _map(event, "message").get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            yield Answered(_text(block, "tool_use_id"), block.get("content"), block.get("is_error") is True)


def _stream_event(event: Event) -> Iterator[Fact]:
    yield from _delta(_map(event, "event"))


def _delta(event: Event) -> Iterator[Fact]:
    delta = event.get("delta")
    text = delta if isinstance(delta, str) else _text(_map(event, "delta"), "text")
    if text:
        yield Heard(text)


def _result(event: Event) -> Iterator[Fact]:
    """Claude Code has its cost here, Gemini CLI its tokens."""
    yield from _spent(_tokens(_map(event, "stats")), total=True)
    yield Ended(_text(event, "result") or None, _dollars(event.get("total_cost_usd")))


def _codex_item(event: Event) -> Iterator[Fact]:
    item = _map(event, "item")
    kind = item.get("type") or item.get("item_type")
    if kind in ("agent_message", "assistant_message"):
        yield Said(_text(item, "text"))
    elif kind == "command_execution":
        yield Called(_text(item, "id"), "command_execution", {"command": item.get("command")})
        yield Answered(_text(item, "id"), item.get("aggregated_output"), item.get("exit_code") not in (0, None))
    elif kind == "mcp_tool_call":
        yield Called(_text(item, "id"), _text(item, "tool") or "mcp_tool_call", item.get("arguments"))
    elif kind in ("file_change", "web_search"):
        yield Called(_text(item, "id"), kind, item.get("changes") or item.get("query"))


def _gemini_message(event: Event) -> Iterator[Fact]:
    if event.get("role") == "assistant":
        yield Said(_text(event, "content"), part=event.get("delta") is True)


def _tool_use(event: Event) -> Iterator[Fact]:
    """Gemini CLI names the tool in the event; OpenCode has it, with its answer, in a part."""
    if name := _text(event, "tool_name"):
        yield Called(_text(event, "tool_id"), name, event.get("parameters"))
    part = _map(event, "part")
    if name := _text(part, "tool"):
        state = _map(part, "state")
        yield Called(_text(part, "callID"), name, state.get("input"))
        yield Answered(_text(part, "callID"), state.get("output"), state.get("status") == "error")


def _tool_result(event: Event) -> Iterator[Fact]:
    yield Answered(_text(event, "tool_id"), event.get("output"), event.get("status") == "error")


def _opencode_text(event: Event) -> Iterator[Fact]:
    if text := _text(_map(event, "part"), "text"):
        yield Said(text)


def _opencode_step(event: Event) -> Iterator[Fact]:
    said = _map(_map(event, "part"), "tokens")
    cache = _map(said, "cache")
    yield from _spent(Tokens(*(_count(each) for each in (
        said.get("input"), said.get("output"), cache.get("read"), cache.get("write")
    ))))  # fmt: skip


def _cursor_call(event: Event) -> Iterator[Fact]:
    if event.get("subtype") == "started":
        for name, call in _map(event, "tool_call").items():
            if isinstance(call, Mapping):
                yield Called(_text(event, "call_id"), str(name).removesuffix("ToolCall"), call.get("args"))


def _copilot_message(event: Event) -> Iterator[Fact]:
    data = _map(event, "data")
    yield Said(_text(data, "content"))
    requests = data.get("toolRequests")
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, Mapping) and (name := _text(request, "name")):
            yield Called(_text(request, "toolCallId"), name, request.get("arguments"))


def _copilot_delta(event: Event) -> Iterator[Fact]:
    if text := _text(_map(event, "data"), "deltaContent"):
        yield Heard(text)


_READERS = {
    "user": _user,
    "stream_event": _stream_event,
    "content_block_delta": _delta,
    "response.output_text.delta": _delta,
    "agent_message_delta": _delta,
    "result": _result,
    "item.completed": _codex_item,
    "message": _gemini_message,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "text": _opencode_text,
    "step_finish": _opencode_step,
    "tool_call": _cursor_call,
    "assistant.message": _copilot_message,
    "assistant.message_delta": _copilot_delta,
}


def _spent(tokens: Tokens, *, total: bool = False) -> Iterator[Fact]:
    if tokens != Tokens():
        yield Spent(tokens, total=total)


def _tokens(usage: Event) -> Tokens:
    def first(*names: str) -> int | None:
        return next((found for name in names if (found := _count(usage.get(name))) is not None), None)

    return Tokens(
        first("input_tokens", "inputTokens"),
        first("output_tokens", "outputTokens"),
        first("cache_read_input_tokens", "cached_input_tokens", "cacheReadTokens", "cached"),
        first("cache_creation_input_tokens", "cacheWriteTokens"),
    )


def _dollars(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return int(value)


def _map(event: Event, name: str) -> Event:
    found = event.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(event: Event, name: str) -> str:
    found = event.get(name)
    return found if isinstance(found, str) else ""

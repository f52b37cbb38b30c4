"""What a coding tool printed, read as it comes: tokens, tool calls, the final message, and whether a skill was loaded.

The rules of accounting are those of the documented `timing.json`: an event of type `assistant` is a step, and its
`message.usage` is added up; any other event that has a `usage` gives the totals, except where it says 0. A tool that
gives several totals, one for each of its turns, is counted with the last of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from trunchray.core.canary import Canary
from trunchray.core.excerpt import excerpt
from trunchray.core.harness_events import Answered, Called, Ended, Fact, Heard, Said, Spent, Tokens, facts
from trunchray.core.masking import NOTHING, Mask
from trunchray.core.trial import ToolCall
from trunchray.core.well_formed import well_formed

LONGEST_LINE = 16 << 20
"""Bytes; what is longer is no event to us."""
MESSAGE_KEPT = 100_000
"""Characters of the final message."""
VALUE_KEPT = 2_000
"""Characters of what a tool was given, and of what it answered; the transcript has all of it."""
CALLS_KEPT = 300
"""Tool calls that are kept one by one; all are counted."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that is taken from it."""

    tokens: Tokens
    """What was not said is 0."""
    tokens_reported: bool
    steps: int
    counts: Mapping[str, int]
    """Tool calls by the tool's name."""
    calls: tuple[ToolCall, ...]
    """The first of them."""
    message: str
    """The final one; when there is no event that has one, the end of what was printed."""
    cost_usd: float | None
    loaded: bool | None
    """Whether the canary was heard; None without one."""


class TranscriptReader:
    """Takes the bytes of one run as they come. What `mask` masks is in nothing that is taken from them."""

    def __init__(self, canary: Canary | None = None, mask: Mask = NOTHING) -> None:
        self._canary, self._mask = canary, mask
        self._line = bytearray()
        self._skipping = False
        self._end = b""
        self._tokens, self._reported = Tokens(0, 0, 0, 0), False
        self._steps = 0
        self._counts: Counter[str] = Counter()
        self._calls: dict[str, ToolCall] = {}
        self._said, self._parts, self._result = "", "", ""
        self._cost: float | None = None

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        if self._canary:
            self._canary.see(chunk)
        self._end = (self._end + chunk)[-MESSAGE_KEPT:]
        first, *rest = chunk.split(b"\n")
        self._add(first)
        if rest:
            self._close_line()
            for line in rest[:-1]:
                self._read(line)
            self._add(rest[-1])

    def end(self) -> Transcript:
        """All there was; nothing is fed afterwards."""
        self._close_line()
        self._close_message()
        message = self._result or self._said or self._end.decode(errors="replace").strip()
        return Transcript(
            tokens=self._tokens,
            tokens_reported=self._reported,
            steps=self._steps,
            counts=dict(self._counts),
            calls=tuple(self._calls.values()),
            message=self._mask.text(well_formed(message))[-MESSAGE_KEPT:],
            cost_usd=self._cost,
            loaded=self._canary.found if self._canary else None,
        )

    def _add(self, piece: bytes) -> None:
        if len(self._line) + len(piece) > LONGEST_LINE:
            self._skipping = True
            self._line.clear()
        if not self._skipping:
            self._line += piece

    def _close_line(self) -> None:
        line, self._skipping = bytes(self._line), False
        self._line.clear()
        self._read(line)

    def _read(self, line: bytes) -> None:
        if b"{" in line:  # there are tools that print a great many lines
            for event in _events(line):
                for fact in facts(event):
                    self._take(fact)

    def _take(self, fact: Fact) -> None:
        match fact:
            case Said():
                self._say(fact)
            case Heard(text):
                self._hear(text)
            case Called():
                self._close_message()
                self._call(fact)
            case Answered(id, output, failed):
                self._answer(id, output, failed=failed)
            case Spent(tokens, total):
                self._reported = True
                self._tokens = _overridden(self._tokens, tokens) if total else _added(self._tokens, tokens)
            case Ended(text, cost):
                self._close_message()
                self._result = text or self._result
                self._cost = self._cost if cost is None else cost

    def _say(self, said: Said) -> None:
        self._hear(said.text)
        if not (said.part and self._parts):
            self._steps += 1
        if said.part:
            self._parts = (self._parts + said.text)[-MESSAGE_KEPT:]
        else:
            self._close_message()
            self._said = said.text if said.text.strip() else self._said

    def _close_message(self) -> None:
        self._said = self._parts if self._parts.strip() else self._said
        self._parts = ""

    def _hear(self, text: str) -> None:
        if self._canary:
            self._canary.hear(text)

    def _call(self, call: Called) -> None:
        name = excerpt(self._mask.text(well_formed(call.name)), 200)
        self._counts[name] += 1
        if len(self._calls) < CALLS_KEPT:
            key = self._mask.text(well_formed(call.id)) or f"call-{len(self._calls) + 1}"
            self._calls[key] = ToolCall(tool_call_id=key, tool_name=name, input=_kept(call.input, self._mask))

    def _answer(self, call: str, output: Any, *, failed: bool) -> None:
        if (known := self._calls.get(self._mask.text(well_formed(call)))) is not None:
            said = _kept(output, self._mask)
            told = {"error": said if isinstance(said, str) else json.dumps(said)} if failed else {"output": said}
            self._calls[known.tool_call_id] = known.model_copy(update=told)


def _events(line: bytes) -> list[Mapping[str, Any]]:
    """The objects of a line of JSON: it is one, or a list of them."""
    if line.lstrip()[:1] not in {b"{", b"["}:
        return []
    try:
        found = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return []
    return [event for event in (found if isinstance(found, list) else [found]) if isinstance(event, Mapping)]


def _added(so_far: Tokens, more: Tokens) -> Tokens:
    return Tokens(
        (so_far.input or 0) + (more.input or 0),
        (so_far.output or 0) + (more.output or 0),
        (so_far.cache_read or 0) + (more.cache_read or 0),
        (so_far.cache_write or 0) + (more.cache_write or 0),
    )


def _overridden(so_far: Tokens, total: Tokens) -> Tokens:
    """What the total says, but for what it has as 0 or does not say."""
    return replace(
        so_far,
        input=total.input or so_far.input,
        output=total.output or so_far.output,
        cache_read=total.cache_read or so_far.cache_read,
        cache_write=total.cache_write or so_far.cache_write,
    )


def _kept(value: Any, mask: Mask) -> JsonValue:
    """The value, masked, or the beginning of its JSON text; None for what has none."""
    try:
        value = mask.value(value)
        text = well_formed(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (ValueError, RecursionError):  # it has NaN, or no end
        return None
    if len(text) <= VALUE_KEPT:
        return json.loads(text)
    return excerpt(well_formed(value) if isinstance(value, str) else text, VALUE_KEPT)

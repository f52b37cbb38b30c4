"""Recorded outputs, played back as if a model had just given them.

A file has one JSON object a line: `case_id`, `output`, and where known `attempt`, `tool_calls`, `finish_reason` and
`usage`. Other columns are ignored: files written by other tools carry their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import RequestedCall
from trunchray.adapters.models.wire import arguments_text, finish_reason, token_count
from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import first_problem
from trunchray.core.trial import FinishReason, Usage
from trunchray.errors import UsageError


@dataclass(frozen=True, slots=True)
class RecordedOutput:
    """One recorded answer; `usage` is None where the file does not say."""

    text: str
    finish_reason: FinishReason
    tool_calls: tuple[RequestedCall, ...] = ()
    usage: Usage | None = None


class Replay:
    """The recorded outputs of one model, found by case and attempt."""

    def __init__(self, rows: dict[tuple[str, int | None], RecordedOutput]) -> None:
        self._rows = rows
        self._numbered: dict[str, list[int]] = {}
        for case_id, attempt in rows:
            if attempt is not None:
                self._numbered.setdefault(case_id, []).append(attempt)

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self) -> float:
        """What an answer takes on average, at about four characters a token where the file does not say; 0 of none."""
        known = (row.usage and row.usage.output_tokens for row in self._rows.values())
        counts = [
            len(row.text) / 4 if said is None else said for said, row in zip(known, self._rows.values(), strict=True)
        ]
        return sum(counts) / len(counts) if counts else 0.0

    def find(self, case_id: str, attempt: int) -> RecordedOutput | None:
        """The row of this attempt (from 1), else the row that serves every attempt, else None."""
        return self._rows.get((case_id, attempt)) or self._rows.get((case_id, None))

    def nth(self, case_id: str, n: int) -> int:
        """The attempt to play as the case's n-th (from 1), where nobody knows attempts: the recorded ones in turn."""
        recorded = self._numbered.get(case_id)
        return sorted(recorded)[(n - 1) % len(recorded)] if recorded else n


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _Call(_Lenient):
    id: str | None = Field(default=None, validation_alias=AliasChoices("id", "toolCallId", "tool_call_id"))
    name: str = Field(
        validation_alias=AliasChoices("name", "toolName", "tool_name", AliasPath("function", "name")), min_length=1
    )
    arguments: JsonValue = Field(
        default=None, validation_alias=AliasChoices("arguments", "input", AliasPath("function", "arguments"))
    )


_Count = Annotated[int | None, BeforeValidator(token_count)]


def _tokens(*names: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(*names))


class _Usage(_Lenient):
    input_tokens: _Count = _tokens("input_tokens", "inputTokens", "prompt_tokens")
    output_tokens: _Count = _tokens("output_tokens", "outputTokens", "completion_tokens")
    cached_input_tokens: _Count = _tokens("cached_input_tokens", "cachedInputTokens")
    reasoning_tokens: _Count = _tokens("reasoning_tokens", "reasoningTokens")


class _Row(_Lenient):
    case_id: str = Field(min_length=1)
    attempt: int | None = Field(default=None, ge=1)
    output: str | None
    tool_calls: list[_Call] | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None


def load_replay(content: bytes, name: str) -> Replay:
    """Read a JSONL file of recorded outputs; blank lines are skipped. `name` is what messages call the file.

    Raises:
        UsageError: naming the line that is not a recorded output, or the two lines for the same case and attempt.
    """
    rows: dict[tuple[str, int | None], RecordedOutput] = {}
    lines: dict[tuple[str, int | None], int] = {}
    for line, row in _rows(content, name):
        key = (row.case_id, row.attempt)
        if key in lines:
            which = f"case {row.case_id!r}" + (f", attempt {row.attempt}" if row.attempt else "")
            raise UsageError(f"{name}: lines {lines[key]} and {line} are both for {which}; keep one of them")
        lines[key] = line
        rows[key] = _recorded(row)
    if not rows:
        raise UsageError(f'{name}: no recorded outputs in it; each line is {{"case_id": …, "output": …}}')
    return Replay(rows)


def _rows(content: bytes, name: str) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, _row(line, f"{name}:{number}")


def _row(line: bytes, place: str) -> _Row:
    try:
        value = json_text.parse(line)
    except ValueError as e:
        raise UsageError(f"{place}: not JSON ({e}): {_shown(line)}") from e
    if not isinstance(value, dict):
        raise UsageError(f'{place}: {_shown(line)} is not an object like {{"case_id": …, "output": …}}')
    try:
        row = _Row.model_validate(value)
    except ValidationError as e:
        raise UsageError(f"{place}: {first_problem(e)}: {_shown(line)}") from e
    if row.output is None and not row.tool_calls:
        raise UsageError(f'{place}: output: null says nothing; write "" for an empty answer')
    return row


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(excerpt(text, 80))


def _recorded(row: _Row) -> RecordedOutput:
    calls = tuple(
        RequestedCall(call.id or f"call_{place}", call.name, arguments_text(call.arguments))
        for place, call in enumerate(row.tool_calls or (), start=1)
    )
    reason = finish_reason(row.finish_reason) if row.finish_reason else "tool-calls" if calls else "stop"
    usage = Usage(**row.usage.model_dump()) if row.usage else None
    return RecordedOutput(row.output or "", reason, calls, usage)

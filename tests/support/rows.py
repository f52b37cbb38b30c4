"""Result rows as `parts.records` gives them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trunchray.adapters import parts
from trunchray.core.trial import Failure, Result, Step, Timing, ToolCall, Trace, Trial, Usage, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def tool_row(output: str = "seen it", arguments: str = '{"at":1}') -> dict[str, Any]:
    """A second attempt that called a tool and got half a point."""
    call = {"toolCallId": "1", "toolName": "look", "arguments": arguments}
    usage = Usage(input_tokens=5, output_tokens=2)
    trace = Trace(
        output=output,
        tool_calls=(ToolCall(tool_call_id="1", tool_name="look", input={"at": 1}, output="seen"),),
        steps=(
            Step("model", "m", {"messages": 2}, {"text": "", "finishReason": "tool-calls", "toolCalls": [call]}),
            Step("tool", "look", {"toolCallId": "1", "input": {"at": 1}}, {"type": "text", "value": "seen"}),
            Step("model", "m", {"messages": 4}, {"text": output, "finishReason": "stop"}),
            Step("limit", "max_steps", 10),
        ),
        usage=usage,
        model="m-1",
    )
    return _row(2, trace=trace, verdict=Verdict(passed=False, score=0.5, details={"why": "half"}))


def error_row() -> dict[str, Any]:
    """A trial that its provider did not answer."""
    return _row(1, failure=Failure(boundary="provider", type="timeout", message="no answer", retryable=True))


def _row(attempt: int, **happened: Any) -> dict[str, Any]:
    result = Result(
        trial=Trial(key=f"key-{attempt}", case_id="c", agent="a", attempt=attempt),
        eval_id="e",
        agent_digest="d",
        latency=Timing(total=1),
        started_at=NOW,
        ended_at=NOW,
        **happened,
    )
    stored = parts.encode([parts.row(result, release_digest="r", versions="{}")])
    (row,) = parts.records(parts.decode(stored))
    return row

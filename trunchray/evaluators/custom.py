"""`custom`: the author's own function, in the sandbox."""

from __future__ import annotations

from pydantic import JsonValue

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.core.case import Case
from trunchray.core.trial import ToolCall, Trace, Usage, Verdict


async def grade_custom(module: SandboxModule, sandbox: EvaluatorSandbox, case: Case, trace: Trace) -> Verdict:
    """What the function says.

    Raises:
        EvaluatorError: it threw, ran out of time or memory, or returned something that is not a verdict.
        SandboxError: no sandbox could be started.
    """
    graded = await sandbox.evaluate(module, given(case, trace))
    return Verdict(passed=graded.passed, score=graded.score, message=graded.message, details=graded.details)


def given(case: Case, trace: Trace) -> dict[str, JsonValue]:
    """The one object that the function gets."""
    return {
        "output": trace.output,
        "caseData": case.data,
        "toolCalls": [call.observed() for call in trace.tool_calls],
        "normalizedToolCalls": [normalised(call) for call in trace.tool_calls if isinstance(call.input, dict)],
        "finishReason": trace.finish_reason,
        "usage": _tokens(trace.usage),
    }


def normalised(call: ToolCall) -> dict[str, JsonValue]:
    """Name and arguments alone, every object's keys in JavaScript's sorting order: equal calls print alike."""
    return {"toolName": call.tool_name, "arguments": _sorted(call.input)}


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=_utf16)}
    return value


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _tokens(usage: Usage) -> dict[str, JsonValue]:
    """Input, output and total tokens are always numbers, 0 when the provider did not say; the others only if it did."""
    tokens: dict[str, JsonValue] = {
        "inputTokens": usage.input_tokens or 0,
        "outputTokens": usage.output_tokens or 0,
        "totalTokens": usage.total_tokens,
    }
    if usage.reasoning_tokens is not None:
        tokens["reasoningTokens"] = usage.reasoning_tokens
    if usage.cached_input_tokens is not None:
        tokens["cachedInputTokens"] = usage.cached_input_tokens
    return tokens

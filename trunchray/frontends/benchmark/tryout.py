"""Grading an answer that somebody wrote, as the run would grade a model's: for authors who test their evaluators."""

from __future__ import annotations

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from trunchray.adapters.releases import CaseTable
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.core.frozen import CamelFrozen
from trunchray.core.trial import ToolCall, Trace, Verdict
from trunchray.errors import ReleaseError, UsageError
from trunchray.evaluators.grade import Grader
from trunchray.frontends.benchmark.compiler import Compiled


class WrittenCall(CamelFrozen):
    """A tool call as an author writes it; what is left out is as if the tool had answered nothing."""

    tool_name: str
    input: JsonValue = Field(default_factory=dict[str, JsonValue])
    tool_call_id: str | None = None
    output: JsonValue = None
    error: str | None = None


_CALLS = TypeAdapter(list[WrittenCall])


def read_calls(content: bytes, place: str) -> tuple[ToolCall, ...]:
    """The calls in a JSON array of `{toolName, input, toolCallId?, output?, error?}`; `place` is what messages call it.

    Raises:
        UsageError: it is not such an array.
    """
    try:
        calls = _CALLS.validate_json(content)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{place}: {field + ': ' if field else ''}{first['msg']}; write a JSON array of "
            '{"toolName": "…", "input": {…}}'
        ) from e
    return tuple(
        ToolCall(
            tool_call_id=call.tool_call_id or f"call-{number}",
            tool_name=call.tool_name,
            input=call.input,
            output=call.output,
            error=call.error,
        )
        for number, call in enumerate(calls, 1)
    )


async def graded(compiled: Compiled, case_id: str, output: str, calls: tuple[ToolCall, ...] = ()) -> Verdict:
    """The verdict of the case's own evaluator on this answer.

    Raises:
        UsageError: there is no such case.
        EvaluatorError: the evaluator crashed, timed out or returned something that is not a verdict.
        SandboxError: no sandbox could be started.
    """
    try:
        case = CaseTable(compiled.cases)[case_id]
    except ReleaseError as e:
        raise UsageError(str(e).replace("the release has", "the benchmark has")) from e
    modules = {
        each.key: SandboxModule(each.key, compiled.modules[each.module], each.export)
        for each in compiled.release.evaluators
    }
    sandbox = EvaluatorSandbox(slots=1)
    try:
        return await Grader(modules, sandbox).grade(case, Trace(output=output, tool_calls=calls))
    finally:
        await sandbox.close()

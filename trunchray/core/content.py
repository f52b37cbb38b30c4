"""What makes a case the same in two releases: what is asked, and how the answer is graded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from trunchray.core.case import Case
from trunchray.core.checks import Check, Custom
from trunchray.core.digest import digest
from trunchray.core.release import Release


def contents(release: Release) -> Callable[[Case], str]:
    """A function that gives the digest of a case's content: input, tools with their code, data, checks with theirs.

    Names do not count: the case's id, title and description, its eval, and where it was written.
    """
    tools: dict[str, JsonValue] = {tool.name: tool.model_dump(mode="json") for tool in release.tools}
    code: dict[str, JsonValue] = {each.key: [each.module, each.export] for each in release.evaluators}

    def content(case: Case) -> str:
        return digest(
            {
                "input": case.input.model_dump(mode="json"),
                "tools": [tools.get(name) for name in case.input.tools],
                "data": case.data,
                "checks": {name: _graded(check, code, release.semantics) for name, check in case.checks.items()},
            }
        )

    return content


def same_questions(first: Release, second: Release) -> Callable[[Case, Case], bool]:
    """A function that says whether a case of the first release and one of the second ask the same, tools included."""
    tools, others = ({tool.name: tool for tool in release.tools} for release in (first, second))

    def same(case: Case, other: Case) -> bool:
        return case.input == other.input and all(tools.get(name) == others.get(name) for name in case.input.tools)

    return same


def _graded(check: Check, code: Mapping[str, JsonValue], semantics: Mapping[str, str]) -> JsonValue:
    rule = semantics.get(check.kind)
    if isinstance(check, Custom):
        return [rule, code.get(check.evaluator_key)]
    return [rule, check.model_dump(mode="json")]

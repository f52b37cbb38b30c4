"""Cases as authored, what they inherit from their eval, and the rules for all cases of a release together."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, JsonValue

from trunchray.core.case import MAX_CASES
from trunchray.core.checks import AnswerBank, Check, Contains, Exact, Gsm8k, NonEmpty, ToolCallSyntax
from trunchray.core.names import nearest
from trunchray.errors import Problem
from trunchray.frontends.benchmark.evals import AuthoredEval, SharedCheck
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.shapes import Authored, Id, Shape, Text, ToolNames

CaseCheck = Annotated[
    NonEmpty | Exact | Contains | AnswerBank | Gsm8k | ToolCallSyntax,
    Field(discriminator="kind"),
]


class AuthoredCase(Authored):
    """One case as written; whether a field was written shows in `model_fields_set`."""

    id: Id
    prompt: Text
    description: str = ""
    system_prompt: str = ""
    tools: ToolNames = []
    data: JsonValue = None
    evaluate: CaseCheck = NonEmpty()


CASE = Shape[AuthoredCase](AuthoredCase)


@dataclass(frozen=True, slots=True)
class ExpandedCase:
    """What the rules need to know of a case after inheritance. `*_place` is where the value was written."""

    place: Position
    id: str
    tools: Sequence[str]
    tools_place: Position
    check: Check | None
    check_place: Position
    has_data: bool


def expand(
    module: str, authored: AuthoredEval, shared: SharedCheck | None, rows: Sequence[tuple[Position, AuthoredCase]]
) -> list[ExpandedCase]:
    """The cases of an eval, each with what it inherits. No rows: the eval is its own and only case."""
    place = Position(module)
    check = shared and shared.check
    if "prompt" in authored.model_fields_set:
        return [ExpandedCase(place, authored.id, authored.tools, place, check, place, has_data=False)]
    return [_inherit(authored, check, place, *row) for row in rows]


def _inherit(
    authored: AuthoredEval, shared: Check | None, module: Position, place: Position, case: AuthoredCase
) -> ExpandedCase:
    own_tools, own_check = ("tools" in case.model_fields_set, "evaluate" in case.model_fields_set)
    return ExpandedCase(
        place,
        case.id,
        case.tools if own_tools else authored.tools,
        place if own_tools else module,
        case.evaluate if own_check else shared,
        place if own_check else module,
        has_data=case.data is not None,
    )


def check_cases(cases: Sequence[ExpandedCase], tools: Set[str] | None) -> list[Problem]:
    """Every rule that concerns cases together. `tools`: the names that exist; None when that is not known."""
    found = same_ids([(case.place, case.id) for case in cases])
    for case in cases:
        if case.check is None:
            remedy = "give it or its eval an `evaluate`" if case.place.row else "give it an `evaluate`"
            found.append(case.place.problem(f"case {case.id!r} has no evaluator; {remedy}"))
        found += _unusable(case)
        if tools is not None:
            found += _unknown_tools(case, tools)
    return found


def too_many(count: int) -> list[Problem]:
    """The refusal of more cases than a release may hold; `count` includes cases that are wrong otherwise."""
    if count <= MAX_CASES:
        return []
    return [Position("evals").problem(f"{count:,} cases are too many; a release holds at most {MAX_CASES:,}")]


def same_ids(cases: Sequence[tuple[Position, str]]) -> list[Problem]:
    """A problem for each case whose id an earlier one has."""
    first: dict[str, Position] = {}
    return [
        place.at("id").problem(f"case id {name!r} is already used at {earlier}; ids are unique in the whole release")
        for place, name in cases
        if (earlier := first.setdefault(name, place)) is not place
    ]


def _unknown_tools(case: ExpandedCase, tools: Set[str]) -> list[Problem]:
    return [
        case.tools_place.at("tools").problem(
            f"tool {shown(name)} does not exist in this repository{nearest(name, tools)}"
        )
        for name in case.tools
        if name not in tools
    ]


def _unusable(case: ExpandedCase) -> list[Problem]:
    """Tools that an evaluator waits for although the case does not offer them."""
    if not isinstance(case.check, ToolCallSyntax):
        return []
    inherited = case.check_place == case.tools_place
    place = (case.check_place if inherited else case.place).at("evaluate")
    return [
        place.problem(f"waits for a call of {shown(name)}, which is not in the case's `tools`; add it there")
        for name in sorted(case.check.tool_names - set(case.tools))
    ]

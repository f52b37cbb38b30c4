"""An eval module: what its default export may say, and the evaluator its cases share."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue

from trunchray.core.checks import AnswerBank, Check, Contains, Custom, Exact, Gsm8k, NonEmpty, ToolCallSyntax
from trunchray.errors import Problem
from trunchray.frontends.benchmark.paths import bad_module, bad_syntax
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.shapes import Authored, Id, Shape, Text, ToolNames
from trunchray.frontends.benchmark.staging import Stage


class AuthoredEval(Authored):
    """The default export of an eval module. `cases` and `evaluate` are looked at apart, because they have many forms.

    Whether a field was written shows in `model_fields_set`; null is never written in place of nothing.
    """

    id: Id
    title: Text = ""
    description: str = ""
    system_prompt: str = ""
    tools: ToolNames = []
    prompt: Text = ""
    cases: JsonValue = None
    evaluate: JsonValue = None


class CustomReference(Authored):
    """An evaluator function that lives in a module of its own: the export after `#` holds `evaluate`.

    `source_path` is relative to the benchmark directory.
    """

    kind: Literal["custom"] = "custom"
    evaluator_key: str
    source_path: str


EvalCheck = Annotated[
    NonEmpty | Exact | Contains | AnswerBank | Gsm8k | ToolCallSyntax | CustomReference, Field(discriminator="kind")
]

EVAL = Shape[AuthoredEval](AuthoredEval)
_EVALUATE = Shape[EvalCheck](EvalCheck)


@dataclass(frozen=True)
class SharedCheck:
    """The evaluator of an eval. For a custom one, `module` and `export` say where its code is."""

    check: Check
    module: str = ""
    export: str = ""

    @property
    def key(self) -> str | None:
        """The evaluator key; None for a declarative evaluator."""
        return self.check.evaluator_key if isinstance(self.check, Custom) else None


def bad_form(authored: AuthoredEval) -> str | None:
    """Why an eval is neither one prompt nor a set of cases; None when it is exactly one of them."""
    written = authored.model_fields_set & {"prompt", "cases"}
    if not written:
        return "has no cases; give it a `prompt`, or `cases`"
    if len(written) > 1:
        return "has both `prompt` and `cases`; keep one of them"
    return None


def shared_check(
    stage: Stage, path: str, authored: AuthoredEval, *, is_function: bool, found: list[Problem]
) -> SharedCheck | None:
    """The evaluator at the level of the eval; None when there is none, or when it is wrong and `found` says why."""
    if is_function:
        return SharedCheck(Custom(evaluator_key=f"{path}#default"), path, "default")
    if "evaluate" not in authored.model_fields_set:
        return None
    place = Position(path, 0, "evaluate")
    check = _EVALUATE.read(authored.evaluate, place, found)
    if isinstance(check, CustomReference):
        return _referenced(stage, check, place, found)
    return check and SharedCheck(cast("Check", check))


def _referenced(stage: Stage, reference: CustomReference, place: Position, found: list[Problem]) -> SharedCheck | None:
    source = reference.source_path
    if complaint := bad_syntax(source) or bad_module(stage, posixpath.normpath(source)):
        found.append(place.at("sourcePath").problem(f"{shown(source)} {complaint}"))
        return None
    key_source, _, export = reference.evaluator_key.rpartition("#")
    if key_source != source or not re.fullmatch(r"[A-Za-z_$][\w$]*", export):
        example = shown(f"{source}#<export>")
        found.append(place.at("evaluatorKey").problem(f"must be {example}, not {shown(reference.evaluator_key)}"))
        return None
    module = posixpath.normpath(source)
    return SharedCheck(Custom(evaluator_key=f"{module}#{export}"), module, export)

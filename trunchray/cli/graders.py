"""Options that name who grades the attempts of skill evals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.errors import UsageError

if TYPE_CHECKING:
    from trunchray.core.grader_spec import GraderSpec

Grader = Annotated[
    str | None,
    typer.Option("--grader", metavar="MODEL", help="A model that grades rubrics, such as openai/gpt-4o-mini."),
]
GraderHarness = Annotated[
    str | None, typer.Option("--grader-harness", metavar="JSON", help="A coding tool that grades rubrics.")
]
GRADES = 16_384
"""Tokens that a grader may write: a sentence for each line of a rubric, and what it thinks before that."""


def grader_of(model: str | None, harness: str | None) -> GraderSpec | None:
    """Who grades by `--grader` and `--grader-harness`; None where neither is given.

    Raises:
        UsageError: both are, or what one names cannot be read.
    """
    from trunchray.core.agent import Limits
    from trunchray.core.grader_spec import HarnessGrader, ModelGrader
    from trunchray.frontends.agents import build_agents
    from trunchray.frontends.model_config import SomeLimits, model_from_id
    from trunchray.frontends.run_config import read_models
    from trunchray.frontends.skill.harness_file import read_harness

    if model and harness:
        raise UsageError("--grader and --grader-harness: only one of them grades; leave the other out")
    if harness:
        return HarnessGrader(harness=read_harness(harness))
    if not model:
        return None
    if model.endswith((".yaml", ".yml")):
        models = read_models(model)
        if len(models) != 1:
            raise UsageError(
                f"--grader {model!r}: lists {len(models)} models, and one grades; leave one in a file of its own"
            )
    else:
        models = (model_from_id(model.removeprefix("litellm:"), option="--grader"),)
    (agent,) = build_agents(models, {}, limits=SomeLimits(), release_limits=Limits(max_output_tokens=GRADES))
    return ModelGrader(model=agent)

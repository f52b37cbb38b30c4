"""Who grades, as data."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from support.attempts import attempt_case
from trunchray.core.agent import Mock, ModelAgent, Pacing, ScriptedReply
from trunchray.core.disarmed import disarmed
from trunchray.core.grader_spec import GraderSpec, HarnessGrader, ModelGrader
from trunchray.core.harness import Harness
from trunchray.errors import UsageError
from trunchray.evaluators.attempts.build import build_grader

SPECS: TypeAdapter[GraderSpec] = TypeAdapter(GraderSpec)
MODEL = ModelGrader(model=ModelAgent(name="g", model="mock/script", mock=Mock(script=(ScriptedReply(text="x"),))))
HARNESS = HarnessGrader(harness=Harness(command=("tool", "{prompt}"), home_files=("login.json",)))


@pytest.mark.parametrize("spec", [MODEL, HARNESS])
def test_it_is_stored_and_read_again(spec: GraderSpec) -> None:
    """A run keeps its grader, and a grader is built of it."""
    again = SPECS.validate_json(json.dumps(spec.model_dump(mode="json")))
    assert again == spec
    case = attempt_case()
    assert build_grader(again).evaluator_digest(case) == build_grader(spec).evaluator_digest(case)


def test_what_makes_another_grader() -> None:
    """What is asked and of whom; not how a model is paced, nor what a tool's login needs."""
    case = attempt_case()
    paced = MODEL.model.model_copy(update={"pacing": Pacing(max_retries=1), "name": "other"})
    same = [build_grader(ModelGrader(model=paced)), build_grader(MODEL)]
    assert len({grader.evaluator_digest(case) for grader in same}) == 1
    others = [
        None,
        MODEL,
        HARNESS,
        MODEL.model_copy(update={"shown": 5_000}),
        HARNESS.model_copy(update={"timeout": 5}),
    ]
    assert len({build_grader(spec).evaluator_digest(case) for spec in others}) == 5


def test_what_is_no_grader() -> None:
    """Limits that make no sense are refused, and so is a model that cannot be asked."""
    for wrong in ({"kind": "human"}, MODEL.model_dump() | {"shown": 10}, HARNESS.model_dump() | {"timeout": 0}):
        with pytest.raises(ValidationError):
            SPECS.validate_python(wrong)
    with pytest.raises(UsageError):
        build_grader(ModelGrader(model=ModelAgent(name="g", model="gpt-4o")))


def test_names_that_tools_look_for() -> None:
    """Instructions of the usual tools, and all that is hidden, get another name; ordinary files keep theirs."""
    for name in (
        ".goosehints",
        "WARP.md",
        "crush.md",
        ".of-a-tool-that-nobody-knows",
        ".memlog.md",
        "AGENTS.md",
        "claude.md",
        ".claude",
        ".agents",
        "GEMINI.md",
        ".mcp.json",
        ".cursor",
        "SKILL.md",
    ):
        assert disarmed(name) == f"{name}.data"
    for name in ("brief.md", "agents", "claude.txt", ""):
        assert disarmed(name) == name

"""What is said of two runs that differ in who graded or in how the same agent was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from trunchray.core.agent import AgentSpec, HarnessAgent, ModelAgent
from trunchray.core.comparison import Contender, compare, unlike
from trunchray.core.grader_spec import GraderSpec, HarnessGrader, ModelGrader
from trunchray.core.group import CaseTotal
from trunchray.core.harness import Harness
from trunchray.core.matching import Matching
from trunchray.core.report import Planned, PlannedModel
from trunchray.core.run import RunSpec
from trunchray.core.sheet import Sheet
from trunchray.core.tally import Tally
from trunchray.core.unequal import unequal

STORED_APART = Matching({"c": "c"}, frozenset(), frozenset(), frozenset())
SAME_ANSWERS = Matching({"c": "c"}, frozenset(), frozenset(), frozenset(), regraded=0)
STRICT, LAX = (HarnessGrader(harness=Harness(command=("grade", f"--{how}", "{prompt}"))) for how in ("strict", "lax"))
COMMANDS = [list(grader.harness.command) for grader in (STRICT, LAX)]
MODEL = ModelGrader(model=ModelAgent(name="g", model="openai/g", base_url="http://localhost"))


def skill(*command: str, tree: str = "a") -> HarnessAgent:
    harness = Harness(command=command or ("tool", "{prompt}"))
    return HarnessAgent.model_validate(
        {"name": "skill", "harness": harness, "skill": {"name": "s", "tree": tree * 64}, "staging": "d" * 64}
    )


def contender(agent: AgentSpec, grading: GraderSpec | None = None, release: str = "d") -> Contender:
    """One case of it, without a verdict."""
    spec = RunSpec(
        run_id="r", title="T", release="memory://r", release_digest=release * 64, agents=(agent,), grading=grading
    )
    model = PlannedModel(agent.name, agent.digest, agent.model, {"e": 1})
    tally = Tally(Planned(spec.run_id, spec.release_digest, spec.title, 1, (model,)))
    return Contender(spec, tally.model(model), tally.sheet(model, {"c": "e"}))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, None, []),
        (STRICT, STRICT, []),
        (
            STRICT,
            LAX,
            ["graders differ: grader.harness.command was {} and is now {}".format(*COMMANDS)],
        ),
        (None, LAX, ["graders differ: only the second run names a grader of its own"]),
        (LAX, None, ["graders differ: only the first run names a grader of its own"]),
    ],
)
def test_another_grader_is_told(before: GraderSpec | None, after: GraderSpec | None, said: Sequence[str]) -> None:
    """With what is another of it; nothing where it is the same, or nobody grades by rubrics."""
    found = unlike(contender(skill(), before), contender(skill(), after), STORED_APART)
    assert list(found) == said


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((STRICT, "d"), "the answers are the same, and so are the graders: one release graded both"),
        ((LAX, "d"), "['grade', '--lax', '{prompt}']) and the answers are the same"),
        ((MODEL, "d"), "is now None, and 2 more) and the answers are the same"),
        (
            (STRICT, "e"),
            "graders differ (dddddddddddd and eeeeeeeeeeee) and the answers are the same: compared are the 1",
        ),
        ((LAX, "e"), "graders differ (dddddddddddd and eeeeeeeeeeee, grader.harness.command was "),
    ],
)
def test_the_same_answers_are_graded_by_releases_and_graders(after: tuple[GraderSpec, str], said: str) -> None:
    """The graders are the same when both are; else it is said, once, what differs."""
    (note,) = unlike(contender(skill(), STRICT), contender(skill(), *after), SAME_ANSWERS)
    assert said in note
    assert note.startswith("graders differ (") is (after != (STRICT, "d"))


def test_the_same_agent_asked_otherwise_is_told() -> None:
    """With what is another of it: a tool's command, a skill's files, a model's parameters; not of two that differ."""
    (note,) = unlike(contender(skill()), contender(skill("tool", "--fast", "{prompt}")), STORED_APART)
    assert note == (
        "'skill' was asked otherwise: command was ['tool', '{prompt}'] and is now ['tool', '--fast', '{prompt}']"
    )
    (note,) = unlike(contender(skill()), contender(skill(tree="b")), STORED_APART)
    assert note == "'skill' was asked otherwise: skill.tree was 'aaaaaaaaaaaa' and is now 'bbbbbbbbbbbb'"
    one, warmer, other = (
        ModelAgent(name=name, model="mock/echo", params={"temperature": heat})
        for name, heat in (("m", 0), ("m", 1), ("other", 1))
    )
    assert list(unlike(contender(one), contender(warmer), STORED_APART)) == [
        "'m' was asked otherwise: params.temperature was 0 and is now 1"
    ]
    assert not list(unlike(contender(one), contender(other), STORED_APART))


@pytest.mark.parametrize(
    ("matching", "after", "told"),
    [
        (SAME_ANSWERS, CaseTotal(3, 2, 2.0), True),
        (SAME_ANSWERS, CaseTotal(2, 1, 1.0), False),
        (SAME_ANSWERS, CaseTotal(3, 3, 3.0), False),
        (STORED_APART, CaseTotal(3, 2, 2.0), False),
    ],
)
def test_a_case_may_break_by_an_answer_that_had_no_verdict(matching: Matching, after: CaseTotal, told: bool) -> None:
    """Of the same answers it is said where a list holds cases whose verdicts need not be others."""
    first, second = (
        replace(contender(skill()), sheet=Sheet({"c": "e"}, {"c": total})) for total in (CaseTotal(2, 2, 2.0), after)
    )
    found = compare(first, second, matching, sources={})
    assert any("more attempts graded in one of the two: 1" in note for note in found.notes) is told


def test_long_values_are_cut_to_where_they_differ() -> None:
    """A long beginning that both share is left out, and what follows is cut."""
    shared = [f"--option-{number}" for number in range(100)]
    (change,) = unequal({"command": [*shared, "one"]}, {"command": [*shared, "another", *shared]})
    assert "'one'] and is now …" in change
    assert "'another', '--option-0'" in change
    assert len(change) < 160

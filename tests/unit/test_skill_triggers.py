"""Trigger rates: from how the runs of a query ended to whether the skill is loaded as it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trunchray.cli.main import run_command
from trunchray.core.attempt import AttemptTiming, Status
from trunchray.errors import UsageError
from trunchray.frontends.skill.trigger_file import TriggerQuery
from trunchray.frontends.skill.triggers import Counts, Options, TriggersResult, judge, prepare

NOW = "2026-01-01T00:00:00Z"


def query(should: bool, text: str = "q", index: int = 0) -> TriggerQuery:
    return TriggerQuery(place="t.json: [0]", index=index, query=text, should_trigger=should)


def timings(letters: str) -> list[AttemptTiming]:
    """`l`oaded, `n`ot loaded, `q`uiet, `e`rror, `t`imeout, `s`kipped."""
    status: dict[str, Status] = {"e": "error", "t": "timeout", "s": "skipped"}
    return [
        AttemptTiming(
            case_id="q000",
            config="skill",
            status=status.get(letter, "ok"),
            loaded=letter == "l" if letter in "ln" else None,
            reason={"e": "exit code 1", "q": "it printed nothing"}.get(letter),
            captured_at=NOW,
        )
        for letter in letters
    ]


@pytest.mark.parametrize(
    ("runs", "threshold", "should", "shouldnt"),
    [
        ("lll", 0.5, True, False),
        ("nnn", 0.5, False, True),
        ("lln", 0.5, True, False),
        ("lnn", 0.5, False, True),
        ("ln", 0.5, True, False),
        ("lln", 2 / 3, True, False),
        ("llln", 0.76, False, True),
        ("lll", 1.0, True, False),
        ("lln", 1.0, False, True),
        ("lnnnnnnnnn", 0.1, True, False),
        ("n", 0.01, False, True),
    ],
)
def test_a_rate_at_the_threshold_triggers(runs: str, threshold: float, should: bool, shouldnt: bool):
    """A query that should trigger passes from there on, and one that should not passes below."""
    assert judge(query(True), timings(runs), threshold).passed is should
    assert judge(query(False), timings(runs), threshold).passed is shouldnt


def test_a_rate_is_that_of_the_runs_that_ended_well():
    """Rounded to three decimals for people, and not for the verdict."""
    found = judge(query(True), timings("lln"), 0.6667)
    assert (found.trigger_rate, found.triggers, found.runs, found.errors) == (0.667, 2, 3, ())
    assert found.passed is False


@pytest.mark.parametrize(
    ("runs", "rate", "completed", "errors"),
    [
        ("lle", 1.0, 2, ("error: exit code 1",)),
        ("ltn", 0.5, 2, ("timeout",)),
        ("eee", None, 0, ("error: exit code 1",) * 3),
        ("lq", 1.0, 1, ("it printed nothing",)),
        ("qq", None, 0, ("it printed nothing",) * 2),
        ("sss", None, 0, ()),
    ],
)
@pytest.mark.parametrize("should", [True, False])
def test_a_query_with_a_run_that_did_not_end_well_is_not_measured(
    runs: str, rate: float | None, completed: int, errors: tuple[str, ...], should: bool
):
    """It neither passes nor fails, whatever the others say."""
    found = judge(query(should), timings(runs), 0.5)
    assert (found.trigger_rate, found.runs, found.errors, found.passed) == (rate, completed, errors, None)


@pytest.mark.parametrize(
    ("status", "unmeasured", "failed", "code"),
    [("completed", 0, 0, 0), ("completed", 0, 3, 0), ("completed", 1, 0, 1), ("skipped", 3, 0, 3)],
)
def test_a_threshold_that_is_missed_is_no_failure_of_the_command(status: str, unmeasured: int, failed: int, code: int):
    """Its exit code says whether everything could be measured."""
    counts = Counts(total=3, passed=3 - failed - unmeasured, failed=failed, unmeasured=unmeasured)
    assert result(counts, status).exit_code == code


def result(counts: Counts, status: str = "completed") -> TriggersResult:
    return TriggersResult(
        run_id="r",
        completed_at=NOW,
        skill_name="s",
        description="d",
        harness="h.json",
        status=status,
        settled=True,
        threshold=0.5,
        results=(judge(query(True), timings("l"), 0.5),),
        summary=counts,
    )


def test_the_result_has_the_documented_keys():
    """Among them `pass`, which Python cannot name."""
    told = result(Counts(total=1, passed=1, failed=0, unmeasured=0)).to_json()
    assert told["results"] == [
        {
            "query": "q",
            "should_trigger": True,
            "trigger_rate": 1.0,
            "triggers": 1,
            "runs": 1,
            "errors": [],
            "pass": True,
        }
    ]
    assert list(told["summary"]) == ["total", "passed", "failed", "unmeasured"]


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Brief/writer\ndescription: Writes briefs.\n---\nA secret body.\n")
    same = {"query": "same", "should_trigger": True}
    (folder / "evals" / "triggers.json").write_text(json.dumps([same, same, {"query": "x", "should_trigger": False}]))
    (folder / "harness.json").write_text(json.dumps({"command": ["tool", "{prompt}"]}))
    return folder


def options(skill: Path, **more: object) -> Options:
    given = {"skill_path": str(skill), "harness": str(skill / "harness.json"), **more}
    return Options(**given)  # pyright: ignore[reportArgumentType] - tests give wrong ones, too


def refused(options: Options) -> str:
    with pytest.raises(UsageError) as error:
        prepare(options)
    assert error.value.exit_code == 2
    return str(error.value)


def test_queries_are_told_apart_by_their_index_and_not_by_their_text(skill: Path):
    """Equal ones are two cases, each with runs and a folder of its own."""
    asked = prepare(options(skill)).question
    assert [(case.id, case.input.prompt) for case in asked.cases] == [("q000", "same"), ("q001", "same"), ("q002", "x")]
    assert [staged.folder for staged in asked.staged.values()] == ["q000", "q001", "q002"]
    assert (asked.attempts, asked.layout) == (3, "queries")


def test_only_name_and_description_of_the_skill_are_there(skill: Path):
    """Its body is not sent to workers at all."""
    asked = prepare(options(skill)).question
    (agent,) = asked.configs
    assert (agent.trigger and agent.trigger.name, agent.trigger and agent.trigger.description) == (
        "Brief/writer",
        "Writes briefs.",
    )
    assert (agent.skill, dict(asked.inputs)) == (None, {})


def test_the_folder_of_a_run_has_a_safe_name(skill: Path):
    """The original took the skill's name as it was, slashes included."""
    assert prepare(options(skill)).question.label == "Brief_writer-triggers"


def test_another_threshold_is_another_question(skill: Path):
    """A run that was begun with one is not finished with another, which its run.json would contradict."""
    digests = {prepare(options(skill, threshold=share)).question.digest for share in (0.5, 0.5, 0.8)}
    assert len(digests) == 2


def test_run_json_says_where_skill_and_queries_are(skill: Path, monkeypatch: pytest.MonkeyPatch):
    """Absolute, however they were named."""
    monkeypatch.chdir(skill.parent)
    about = prepare(options(Path("skill"), harness=str(skill / "harness.json"))).about
    assert (about["skill_path"], about["queries_file"]) == (str(skill), str(skill / "evals" / "triggers.json"))


@pytest.mark.parametrize("threshold", [0, -0.5, 1.01, float("nan"), float("inf")])
def test_a_threshold_is_a_share(skill: Path, threshold: float):
    """Above 0 and at most 1."""
    assert "must be more than 0 and at most 1" in refused(options(skill, threshold=threshold))


def test_a_skill_without_name_is_no_traceback(skill: Path):
    """Nor is one without frontmatter, or no skill at all."""
    (skill / "SKILL.md").write_text("---\ndescription: x\n---\n")
    assert "the frontmatter has no name" in refused(options(skill))
    (skill / "SKILL.md").write_text("no frontmatter")
    assert "has no frontmatter" in refused(options(skill))
    (skill / "SKILL.md").unlink()
    assert "has no SKILL.md" in refused(options(skill))


def test_queries_that_cannot_be_had(skill: Path):
    """Missing, of another format, or none."""
    file = skill / "evals" / "triggers.json"
    file.write_text(json.dumps([{"query": "x"}]))
    assert "has no 'should_trigger'" in refused(options(skill))
    file.write_text("[]")
    assert "has no queries" in refused(options(skill))
    file.unlink()
    assert "no triggers.json in" in refused(options(skill))
    assert "none.json" in refused(options(skill, queries=str(skill / "none.json")))


def test_a_harness_file_that_is_missing(skill: Path):
    """Is no run without a harness."""
    assert "none.json" in refused(options(skill, harness=str(skill / "none.json")))


@pytest.mark.parametrize(
    "option",
    [
        ("--runs-per-query", "0"),
        ("--runs-per-query", "-1"),
        ("--threshold", "0"),
        ("--threshold", "nan"),
        ("--timeout", "nan"),
        ("--workers", "0"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_run(
    skill: Path, option: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Exit code 2, and nothing is written; with no runs at all, the original passed all that should not trigger."""
    command = ["skills", "triggers", "--skill-path", str(skill), "--output-dir", str(tmp_path / "out"), *option]
    assert run_command(command) == 2
    assert option[0] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

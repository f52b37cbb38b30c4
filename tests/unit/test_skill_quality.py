"""What `skills run` asks: of which agents, what, and how often; and what it refuses before anything runs."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunchray.cli.main import run_command
from trunchray.core.checks import Completed, RubricLine
from trunchray.core.digest import sha256
from trunchray.core.grader_spec import HarnessGrader
from trunchray.core.harness import Harness
from trunchray.errors import UsageError
from trunchray.frontends.skill.quality import Options, prepare

GRADER = HarnessGrader(harness=Harness(command=("grade", "{prompt}")))
Asks = Callable[..., Options]


def case(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "input": f"do {name}", "rubric": [f"{name} is done", f"{name} is good"], **more}


def write(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.fixture
def asks(tmp_path: Path) -> Asks:
    """Options for a skill with the cases that are given."""
    project = tmp_path / "project"
    skill = project / "skills" / "brief"
    write(skill / "SKILL.md", "---\nname: brief\ndescription: Writes briefs.\n---\n")
    write(tmp_path / "project" / "harness.json", {"command": ["tool", "{prompt}"]})
    write(skill / "evals" / "data" / "in.csv", "1,2\n")
    (project / ".git").mkdir()

    def asking(*cases: dict[str, Any], **more: Any) -> Options:
        file = write(skill / "evals" / "cases.json", {"cases": cases or (case("one"), case("two"))})
        given = {"skill_path": str(skill), "cases": file, "harness": str(project / "harness.json"), **more}
        return Options(**given)

    return asking


def refused(options: Options) -> str:
    with pytest.raises(UsageError) as error:
        prepare(options)
    assert error.value.exit_code == 2
    return str(error.value)


@pytest.mark.parametrize(
    ("mode", "configs"),
    [("quality", ["skill"]), ("baseline", ["skill", "bare"]), ("variant", ["skill", "variant"])],
)
def test_a_mode_is_a_list_of_agents(asks: Asks, tmp_path: Path, mode: str, configs: list[str]):
    """They differ by the skill alone, and share the number of attempts that may be under way."""
    other = tmp_path / "next"
    write(other / "SKILL.md", "another")
    variant = {"variant_path": str(other)} if mode == "variant" else {}
    asked = prepare(asks(mode=mode, workers=3, **variant)).question
    agents = [each.agent("0" * 64) for each in asked.configs]
    assert [agent.name for agent in agents] == configs
    assert [agent.skill.name if agent.skill else None for agent in agents] == [
        {"skill": "brief", "bare": None, "variant": "next"}[config] for config in configs
    ]
    assert {(agent.quota.name, agent.quota.max_in_flight) for agent in agents if agent.quota} == {("harness", 3)}
    assert {agent.skill.tree for agent in agents if agent.skill} <= set(asked.inputs)
    assert len({agent.digest for agent in agents}) == len(configs)


def test_a_case_is_sent_as_it_is_written(asks: Asks):
    """Input and prefix make the prompt; the whole case becomes `case.json`; its own timeout counts."""
    odd = case("A/b", state_prefix="before \n", timeout=7, owner="me", input=" {cwd} \n")
    asked = prepare(asks(odd, case("two"))).question
    first, second = asked.cases
    assert (first.title, first.input.prompt, second.input.prompt) == ("A/b", "before\n\n {cwd} \n", "do two")
    staged = asked.staged[first.id]
    assert (staged.folder, staged.case, staged.timeout) == ("A_b", odd, 7)
    assert asked.staged[second.id].timeout is None
    assert (first.source.row, second.source.row) == (1, 2)


def test_rubric_lines_are_checks_where_somebody_grades(asks: Asks):
    """Without a grader, or without a rubric, all there is to see is whether an attempt ended well."""
    with_one = prepare(asks(case("one"), case("two", rubric=[]), mode="baseline", grading=GRADER)).question
    assert [dict(each.checks) for each in with_one.cases] == [
        {"rubric-1": RubricLine(text="one is done"), "rubric-2": RubricLine(text="one is good")},
        {"completed": Completed()},
    ]
    assert {"completed": Completed()} == dict(prepare(asks()).question.cases[0].checks)


def test_fixtures_are_read_before_anything_runs(asks: Asks):
    """Each once, by its hash, which `run.json` names."""
    asked = prepare(asks(case("one", files=["data/in.csv"]), case("two", files=["data/in.csv"])))
    sha = sha256(b"1,2\n")
    assert asked.question.inputs[sha] == b"1,2\n"
    assert {fixture.sha256 for staged in asked.question.staged.values() for fixture in staged.fixtures} == {sha}
    assert asked.about["fixtures"] == [{"file": "data/in.csv", "sha256": sha}]


def test_a_run_is_called_by_skill_and_mode_unless_it_has_a_label(asks: Asks):
    """As in `brief-quality`."""
    assert prepare(asks()).question.label == "brief-quality"
    assert prepare(asks(label="mine")).question.label == "mine"


@pytest.mark.parametrize(
    "change",
    [
        {"cases": "two"},
        {"runs": 2},
        {"timeout": 5.0},
        {"mode": "baseline"},
        {"grading": GRADER},
        {"label": "other"},
        {"skill": "changed"},
        {"harness": "changed"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_makes_another_question(asks: Asks, change: dict[str, Any], tmp_path: Path):
    """A run is only gone on with when all of this is the same."""
    before = prepare(asks()).question.digest
    assert prepare(asks()).question.digest == before
    match change:
        case {"cases": _}:
            options = asks(case("one"), case("two", input="else"))
        case {"skill": _}:
            write(tmp_path / "project" / "skills" / "brief" / "SKILL.md", "changed")
            options = asks()
        case {"harness": _}:
            options = asks(harness=write(tmp_path / "h.json", {"command": ["other", "{prompt}"]}))
        case _:
            options = asks(**change)
    assert prepare(options).question.digest != before


def test_what_makes_no_other_question(asks: Asks):
    """How many attempts are under way at a time."""
    assert prepare(asks(workers=9)).question.digest == prepare(asks(workers=1)).question.digest


def test_only_some_cases(asks: Asks):
    """Those that are named, in the order of the file."""
    some = asks(case("one"), case("two"), case("three"), case_ids=("three", "one"))
    assert [each.title for each in prepare(some).question.cases] == ["one", "three"]
    assert prepare(some).about["case_count"] == 2


def test_cases_without_a_rubric_may_be_left_out(asks: Asks):
    """Quality needs a rubric only of the cases that are run."""
    assert prepare(asks(case("one"), case("two", rubric=[]), case_ids=("one",)))


def test_an_unknown_case_id_does_not_silently_run_nothing(asks: Asks):
    """The original ran no case then, and ended with 0."""
    assert "--case-ids: there is no case 'tow' — did you mean 'two'?" in refused(asks(case_ids=("one", "tow")))


def test_zero_cases_are_refused(asks: Asks, tmp_path: Path):
    """The original ran none, and ended with 0."""
    assert "has no cases" in refused(asks(cases=write(tmp_path / "none.json", {"cases": []})))


def test_duplicate_case_ids_are_refused(asks: Asks):
    """Also those that would share a folder."""
    assert "is already that of cases[0]" in refused(asks(case("one"), case("one")))
    assert "gives the folder 'a_b', and so does 'a/b'" in refused(asks(case("a/b"), case("a_b")))


def test_a_variant_needs_another_version(asks: Asks, tmp_path: Path):
    """And another version the mode; it is a skill, too."""
    assert "name its folder by --variant-path" in refused(asks(mode="variant"))
    assert "give --mode variant" in refused(asks(mode="baseline", variant_path=str(tmp_path)))
    assert "--variant-path" in refused(asks(mode="variant", variant_path=str(tmp_path)))
    assert "has no SKILL.md" in refused(asks(mode="variant", variant_path=str(tmp_path)))


def test_a_variant_that_is_the_same_skill_is_refused(asks: Asks, tmp_path: Path):
    """Before anything is written, and not by a traceback afterwards; another name or file makes it another one."""
    other = tmp_path / "brief"
    skill = Path(asks().skill_path)
    shutil.copytree(skill, other)
    variant = {"mode": "variant", "variant_path": str(other)}
    assert "has the name and the files of the other one" in refused(asks(**variant))
    write(other / "evals" / "cases.json", [case("its own")])
    assert "has the name and the files of the other one" in refused(asks(**variant))
    other.rename(tmp_path / "shorter")
    assert prepare(asks(mode="variant", variant_path=str(tmp_path / "shorter")))
    (tmp_path / "shorter").rename(other)
    write(other / "SKILL.md", "changed")
    assert prepare(asks(**variant))


@pytest.mark.parametrize(
    ("text", "said"), [("# Brief", "has no frontmatter"), ("---\nname: brief\n---\n", "has no description")]
)
def test_a_skill_that_tools_will_not_find_is_told(asks: Asks, text: str, said: str):
    """It runs as it is; but a baseline without it would be worth as much."""
    asking = asks()
    write(Path(asking.skill_path) / "SKILL.md", text)
    (note,) = prepare(asking).notes
    assert said in note
    assert note.endswith("most coding tools load no such skill, and then it is worth nothing")


def test_a_variant_of_another_name_is_told(asks: Asks, tmp_path: Path):
    """It may be another skill by mistake; a version of the skill is told nowhere."""
    other = tmp_path / "other"
    variant = asks(mode="variant", variant_path=str(other))
    write(other / "SKILL.md", "---\nname: letter\ndescription: Writes letters.\n---\n")
    assert prepare(variant).notes == ["the variant is another skill: it is called 'letter', and not 'brief'"]
    write(other / "SKILL.md", "---\nname: brief\ndescription: Writes letters.\n---\n")
    assert prepare(variant).notes == []


def test_neither_cases_nor_queries_are_in_the_skill_that_a_tool_gets(asks: Asks, tmp_path: Path):
    """They hold the rubric, which config `bare` would not see; what else is in `evals/` stays."""
    options = asks()
    skill = Path(options.skill_path)
    for name in ("triggers.json", "evals.json", "scripted.json"):
        write(skill / "evals" / name, [])
    mine = write(skill / "mine.json", Path(str(options.cases)).read_text())
    (content,) = prepare(asks(cases=mine)).question.inputs.values()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == ["SKILL.md", "evals", "evals/data", "evals/scripted.json", "evals/data/in.csv"]


def test_a_changed_rubric_leaves_the_skill_as_it_was(asks: Asks):
    """Runs with and without the change compare one and the same agent."""
    before, after = (prepare(asks(case("one", rubric=[line]))).question for line in ("a", "b"))
    assert [config.skill for config in before.configs] == [config.skill for config in after.configs]
    assert before.digest != after.digest


def test_it_is_the_same_question_however_paths_are_written(asks: Asks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From another folder, by discovery, with a detour; `run.json` has whole paths."""
    options = asks()
    skill = Path(options.skill_path)
    monkeypatch.chdir(tmp_path / "project")
    found = [
        prepare(each)
        for each in (
            options,
            asks(skill_path="skills/brief", cases=None),
            asks(skill_path="skills/../skills/brief", cases="skills/brief/evals/cases.json", harness="harness.json"),
        )
    ]
    assert len({each.question.digest for each in found}) == 1
    assert {(each.about["skill_path"], each.about["cases_file"]) for each in found} == {
        (str(skill), str(skill / "evals" / "cases.json"))
    }
    assert {each.about["harness"] for each in found} == {str(tmp_path / "project" / "harness.json")}
    assert {each.question.title for each in found} == {"brief quality"}


def test_a_folder_without_skill_md_is_no_skill(asks: Asks, tmp_path: Path):
    """Neither is a folder that is not there."""
    assert "has no SKILL.md" in refused(asks(skill_path=str(tmp_path)))
    assert "no such folder" in refused(asks(skill_path=str(tmp_path / "none")))


def test_a_harness_file_that_is_missing_is_no_run_without_a_harness(asks: Asks, tmp_path: Path):
    """The original staged everything and ended with 3."""
    assert "none.json" in refused(asks(harness=str(tmp_path / "none.json")))


def test_a_missing_fixture_stops_before_any_case(asks: Asks):
    """The original warned, and ran the cases without it."""
    said = refused(asks(case("one", files=["data/none.csv"]), case("two")))
    assert said.startswith(f"{asks().cases}: cases[0]: files: 'data/none.csv' is neither in ")


def test_a_fixture_that_leads_elsewhere_is_refused(asks: Asks):
    """The original only looked at where it would land."""
    assert "leads out of its folder" in refused(asks(case("one", files=["../../../secret.txt"])))


def test_bad_case_files_are_no_traceback(asks: Asks, tmp_path: Path):
    """Not there, no JSON, another format."""
    assert "none.json" in refused(asks(cases=str(tmp_path / "none.json")))
    assert "is not JSON" in refused(asks(cases=write(tmp_path / "bad.json", "{")))
    assert "has no 'input'" in refused(asks(cases=write(tmp_path / "x.json", {"cases": [{"id": 1, "prompt": "x"}]})))


def test_quality_needs_a_rubric(asks: Asks):
    """Other modes do not."""
    assert "has no rubric" in refused(asks(case("one", rubric=[])))
    assert prepare(asks(case("one", rubric=[]), mode="baseline"))


def test_no_such_project(asks: Asks, tmp_path: Path):
    """A folder that is named as the project's is one."""
    assert "--project-root" in refused(asks(project_root=str(tmp_path / "none")))
    assert "--project-root" in refused(asks(project_root=""))  # of a variable that a shell does not know


def test_a_skill_with_a_pipe_in_it_is_refused(asks: Asks, tmp_path: Path):
    """It cannot be copied for each attempt."""
    os.mkfifo(tmp_path / "project" / "skills" / "brief" / "pipe")
    assert "cannot be copied for each attempt" in refused(asks())


def test_cases_are_found_where_a_skill_or_its_project_keeps_them(asks: Asks, tmp_path: Path):
    """`run.json` says which file was taken."""
    asks()
    skill = tmp_path / "project" / "skills" / "brief"
    options = Options(skill_path=str(skill))
    assert prepare(options).about["cases_file"] == str(skill / "evals" / "cases.json")
    kept = tmp_path / "project" / "evals" / "brief"
    kept.mkdir(parents=True)
    (skill / "evals" / "cases.json").rename(kept / "cases.json")
    assert prepare(options).about["cases_file"] == str(kept / "cases.json")
    (kept / "cases.json").unlink()
    assert "trunchray does not invent cases" in refused(options)


@pytest.mark.parametrize(
    "option",
    [
        ("--runs", "0"),
        ("--runs", "-1"),
        ("--workers", "0"),
        ("--timeout", "0"),
        ("--timeout", "nan"),
        ("--mode", "both"),
        ("--timeout", "inf"),
        ("--case-ids", " , "),
        ("--label", "x" * 300),
    ],
    ids=" ".join,
)
def test_options_that_make_no_run(
    asks: Asks, option: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Exit code 2, and nothing is written; the original made one run of `--runs 0`."""
    options = asks()
    command = ["skills", "run", "--skill-path", options.skill_path, "--output-dir", str(tmp_path / "out")]
    assert run_command([*command, "--harness", str(options.harness), *option]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert option[0] in said
    assert not (tmp_path / "out").exists()

"""Which coding tool evals run through, and where their runs go: from a file, or from what BMad has recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.bmad import output_folder
from trunchray.frontends.skill.harness_file import find_harness, read_harness
from trunchray.frontends.skill.project import Project

TEAM = '[workflow.harness]\ncommand = ["claude", "-p", "{prompt}"]\nhome_files = ["a"]\nenv = { USER = "", A = "1" }\n'


def layer(project: Path, name: str, text: str) -> None:
    file = project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def written(folder: Path, keys: object) -> str:
    file = folder / "harness.json"
    file.write_text(json.dumps(keys))
    return str(file)


def test_a_harness_file_has_the_documented_keys(tmp_path: Path):
    """Only the command is needed."""
    keys = {"command": ["t", "{prompt}"], "skill_dir": ".claude/skills", "env": {"U": ""}, "home_files": ["Library/K"]}
    harness = read_harness(written(tmp_path, keys))
    assert json.loads(harness.model_dump_json()) == keys
    assert read_harness(written(tmp_path, {"command": ["t", "{prompt}"]})).skill_dir == ".agents/skills"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["t", "{prompt}"], "a harness is an object with 'command', not a list"),
        ({}, "command: is missing"),
        ({"command": "t {prompt}"}, "command: must be a list"),
        ({"command": []}, "command: is empty"),
        ({"command": ["t"]}, "tokens has '{prompt}' in it"),
        ({"command": "t --api-key hunter2hunter2"}, "command: must be a list (got text with something like a cred"),
        ({"command": ["t", 3, "{prompt}"]}, "command[1]: must be text, in quotes (got 3)"),
        ({"command": ["{prompt}"], "skill_dir": "../x"}, "skill_dir: '../x' leads out of its folder"),
        ({"command": ["{prompt}"], "skill_dir": 3}, "skill_dir: must be text"),
        ({"command": ["{prompt}"], "env": ["A"]}, "env: must be a mapping"),
        ({"command": ["{prompt}"], "env": {"A": 1}}, "env.A: must be text, in quotes (got 1)"),
        ({"command": ["{prompt}"], "home_files": "a"}, "home_files: must be a list"),
        ({"command": ["{prompt}"], "skills_dir": "a"}, "skills_dir: unknown key — did you mean 'skill_dir'?"),
    ],
)
def test_what_is_no_harness_is_a_usage_error(tmp_path: Path, keys: object, message: str):
    """With the file, the key and the value."""
    with pytest.raises(UsageError) as error:
        read_harness(written(tmp_path, keys))
    assert error.value.exit_code == 2
    assert str(error.value).startswith(str(tmp_path / "harness.json"))
    assert message in str(error.value)


def test_a_harness_file_that_is_not_there_is_a_usage_error_and_no_missing_harness(tmp_path: Path):
    """Whoever names a file means it: nothing is staged and skipped instead."""
    with pytest.raises(UsageError, match=r"cannot read the harness '.*none.json': No such file") as error:
        find_harness(str(tmp_path / "none.json"), Project(tmp_path))
    assert error.value.exit_code == 2


def test_a_credential_in_a_harness_file_is_refused_without_being_told(tmp_path: Path):
    """The message, which ends in logs, names the variable alone."""
    keys = {"command": ["{prompt}"], "env": {"ANTHROPIC_API_KEY": "sk-ant-123456789012345678901234"}}
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY") as error:
        read_harness(written(tmp_path, keys))
    assert "sk-ant" not in str(error.value)


def test_no_harness_is_recorded(tmp_path: Path):
    """That is no error: it is said why there is none."""
    assert find_harness(None, None).harness is None
    assert "BMad is not set up" in find_harness(None, Project(tmp_path)).source
    layer(tmp_path, "_bmad/custom/bmad-eval.toml", "[workflow.harness]\nskill_dir = 'x'\ncommand = []\n")
    found = find_harness(None, Project(tmp_path))
    assert (found.harness, found.source) == (None, f"no [workflow.harness] with a command in {tmp_path}/_bmad/custom")


def test_a_persons_own_command_replaces_that_of_the_team_and_is_not_appended_to_it(tmp_path: Path):
    """Lists replace lists, tables are merged: the own layer wins, key by key."""
    layer(tmp_path, ".claude/skills/bmad-eval/customize.toml", "[workflow.harness]\nskill_dir = '.claude/skills'\n")
    layer(tmp_path, "_bmad/custom/bmad-eval.toml", TEAM)
    own = '[workflow.harness]\ncommand = ["codex", "{prompt}"]\nhome_files = ["b"]\nenv = { A = "2", B = "~/b" }\n'
    layer(tmp_path, "_bmad/custom/bmad-eval.user.toml", own)
    found = find_harness(None, Project(tmp_path))
    assert found.harness is not None
    assert (found.harness.command, found.harness.home_files) == (("codex", "{prompt}"), ("b",))
    assert (found.harness.skill_dir, found.harness.env) == (".claude/skills", {"USER": "", "A": "2", "B": "~/b"})
    assert found.source == (
        "[workflow.harness] of .claude/skills/bmad-eval/customize.toml, _bmad/custom/bmad-eval.toml, "
        "_bmad/custom/bmad-eval.user.toml"
    )


def test_a_file_goes_before_what_is_recorded(tmp_path: Path):
    """And is where the harness is from."""
    layer(tmp_path, "_bmad/custom/bmad-eval.toml", TEAM)
    file = written(tmp_path, {"command": ["mine", "{prompt}"]})
    found = find_harness(file, Project(tmp_path))
    assert found.harness is not None
    assert (found.harness.command[0], found.source) == ("mine", file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[workflow", "bmad-eval.toml: is not TOML"),
        ('[workflow.harness]\ncommand = ["t"]', "[workflow.harness] of _bmad/custom/bmad-eval.toml: command"),
        ('workflow.harness = "t {prompt}"', "a harness is an object with 'command', not 't {prompt}'"),
        ("[workflow.harness]\ncommand = ['{prompt}']\nenv = {A = 2020-01-01}", "date is not JSON serializable"),
    ],
)
def test_a_layer_that_says_nonsense_is_named(tmp_path: Path, text: str, message: str):
    """A broken layer is not passed over, as if nothing stood there."""
    layer(tmp_path, "_bmad/custom/bmad-eval.toml", text)
    with pytest.raises(UsageError) as error:
        find_harness(None, Project(tmp_path))
    assert message in str(error.value)


def test_without_bmad_runs_go_to_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`~/bmad-evals`, whatever project there is."""
    monkeypatch.setenv("HOME", "/home/of/mine")
    assert output_folder(None) == output_folder(Project(tmp_path)) == Path("/home/of/mine/bmad-evals")


def test_with_bmad_runs_go_to_the_reports_folder(tmp_path: Path):
    """Below BMad's output folder, whose last layer wins, unless the eval's own customisation names another."""
    (tmp_path / "_bmad").mkdir()
    assert output_folder(Project(tmp_path)) == tmp_path / "_bmad-output" / "eval-reports"
    layer(tmp_path, "_bmad/config.toml", '[core]\noutput_folder = "{project-root}/out"\n')
    assert output_folder(Project(tmp_path)) == tmp_path / "out" / "eval-reports"
    layer(tmp_path, "_bmad/config.user.toml", '[core]\noutput_folder = "own"\n')
    assert output_folder(Project(tmp_path)) == tmp_path / "own" / "eval-reports"
    layer(tmp_path, "_bmad/custom/config.toml", '[core]\noutput_folder = "team"\n')
    layer(tmp_path, "_bmad/custom/config.user.toml", '[core]\noutput_folder = "/else/where"\n')
    assert output_folder(Project(tmp_path)) == Path("/else/where/eval-reports")
    layer(tmp_path, "_bmad/custom/bmad-eval.toml", '[workflow]\nreports_folder = "{project-root}/r/x"\n')
    assert output_folder(Project(tmp_path)) == tmp_path / "r" / "x"


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ('"{date}/x"', r"workflow.reports_folder of .*: \{date\} in '\{date\}/x' is not known"),
        ("3", r"workflow.reports_folder of .*: must be a folder \(got 3\)"),
        ('" "', r"must be a folder \(got ' '\)"),
    ],
)
def test_a_reports_folder_that_is_none_is_refused(tmp_path: Path, folder: str, message: str):
    """With the key and the value."""
    layer(tmp_path, "_bmad/custom/bmad-eval.user.toml", f"[workflow]\nreports_folder = {folder}\n")
    with pytest.raises(UsageError, match=message):
        output_folder(Project(tmp_path))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to somebody else")
@pytest.mark.parametrize("foreign", ["_bmad", "_bmad/custom", "_bmad/custom/bmad-eval.user.toml"])
def test_what_another_user_has_recorded_is_not_run(tmp_path: Path, foreign: str):
    """As in `/tmp/_bmad`: it names a command, unless the project was named by who runs it."""
    layer(tmp_path, "_bmad/custom/bmad-eval.user.toml", TEAM)
    os.chown(tmp_path / foreign, 12345, -1)
    for read in (lambda project: find_harness(None, project), output_folder):
        with pytest.raises(UsageError, match=r"belongs to another user \(12345\).*give --project-root"):
            read(Project(tmp_path))
    assert find_harness(None, Project(tmp_path, named=True)).harness
    os.chown(tmp_path / foreign, 0, -1)
    assert find_harness(None, Project(tmp_path)).harness

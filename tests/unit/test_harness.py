"""A harness as data: what is refused, and how one run's argument list and variables come of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from trunchray.core.agent import HarnessAgent, SkillTree, TriggerSkill
from trunchray.core.frozen import first_problem
from trunchray.core.grader_spec import HarnessGrader
from trunchray.core.harness import Harness

TREE = "a" * 64


def harness(**given: Any) -> Harness:
    return Harness.model_validate({"command": ["tool", "-p", "{prompt}"], **given})


def refusal(**given: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        harness(**given)
    return first_problem(caught.value)


def test_the_documented_defaults():
    """Only the command is needed."""
    assert harness().skill_dir == ".agents/skills"
    assert (harness().env, harness().home_files) == ({}, ())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command": []}, "is empty"),
        ({"command": "tool {prompt}"}, "command"),
        ({"command": ["tool", "-p"]}, "tokens has '{prompt}' in it"),
        ({"command": ["", "{prompt}"]}, "begins with an empty token"),
        ({"command": ["tool", 1, "{prompt}"]}, "command.1"),
        ({"command": ["tool", "{prompt}", "\0"]}, "NUL"),
        ({"skill_dir": "/skills"}, "not relative"),
        ({"skill_dir": "~/skills"}, "not relative"),
        ({"skill_dir": "a/../../skills"}, "leads out of"),
        ({"skill_dir": "C:\\skills"}, "Windows"),
        ({"skill_dir": ""}, "is empty"),
        ({"skill_dir": ".git/skills"}, "git's own folder"),
        ({"env": ["A"]}, "env"),
        ({"env": {"A": 1}}, "env.A"),
        ({"env": {"A=B": "1"}}, "cannot be set"),
        ({"env": {"": "1"}}, "cannot be set"),
        ({"home_files": "x"}, "home_files"),
        ({"home_files": ["~/../other"]}, "leads out of"),
        ({"home_files": ["/etc/passwd"]}, "not relative"),
        ({"home_files": ["~"]}, "is empty"),
        ({"home_files": ["."]}, "whole home folder"),
        ({"shell": True}, "shell"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str):
    """Whatever is wrong is named before anything runs."""
    assert said in refusal(**given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_API_KEY", "abc123"),
        ("GH_TOKEN", "whatever"),
        ("MY_PASSWORD", "hunter2"),
        ("PLAIN", "sk-ant-api03-aaaaaaaaaaaaaaaaaaaa"),
        ("PLAIN", "https://me:secret@example.com/"),
    ],
)
def test_a_credential_is_refused_without_being_shown(name: str, value: str):
    """A harness is stored with the run, so a credential is refused; what it is does not appear in the message."""
    said = refusal(env={name: value})
    assert name in said
    assert value not in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_API_KEY", ""),
        ("TOKEN_FILE_KEY", "~/.tool/token"),
        ("MAX_OUTPUT_TOKENS", "32000"),
        ("DISABLE_AUTH", "1"),
        ("GIT_AUTHOR_NAME", "Somebody"),
        ("OPENAI_API_KEY", "EMPTY"),
        ("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
    ],
)
def test_what_is_no_credential_is_kept(name: str, value: str):
    """A forwarded variable, a path in the fresh home, a number or a name stand in the harness as they are."""
    assert harness(env={name: value}).env == {name: value}


@pytest.mark.parametrize(
    "tokens",
    [
        ["--api-key", "hunter2hunter2"],
        ["--api-key=hunter2hunter2"],
        ["OPENAI_API_KEY=hunter2hunter2"],
        ["-H", "X-Api-Key: hunter2hunter2"],
        ["-H", "Authorization: Bearer hunter2hunter2"],
        ["--set", "a=sk-hunter2hunter2hunter2"],
        ["--proxy", "http://me:hunter2hunter2@proxy"],
    ],
)
def test_a_credential_in_the_command_is_refused_without_being_shown(tokens: list[str]):
    """The command is stored with the run and stands in its report, whether the tool is under test or grades."""
    given = {"command": ["tool", *tokens, "{prompt}"]}
    for shape, content in ((Harness, given), (HarnessGrader, {"harness": given})):
        with pytest.raises(ValidationError) as caught:
            shape.model_validate(content)
        said = first_problem(caught.value)
        assert "something like a credential" in said
        assert "hunter2" not in said


def test_a_command_without_a_prompt_is_not_shown():
    """Whatever is wrong with a command, what is in it may be a key."""
    assert "hunter2" not in refusal(command=["tool", "--api-key", "hunter2hunter2"])


@pytest.mark.parametrize(
    "tokens",
    [
        ["--key", "{prompt}"],
        ["--api-key=$OPENAI_API_KEY"],
        ["-H", "Authorization: Bearer $TOKEN"],
        ["--max-tokens", "32000"],
        ["--api-key-env", "OPENAI_API_KEY"],
        ["--auth-type", "oauth-personal"],
        ["--task", "task-with-a-very-long-name-of-its-own"],
        ["--key-file", "~/.tool/key"],
        ["-c", "print(sorted(names, key=len))"],
    ],
)
def test_what_is_no_credential_in_a_command(tokens: list[str]):
    """A reference to one, a number, a file or the name of a setting."""
    assert harness(command=["tool", *tokens, "{prompt}"])


def test_cwd_within_the_users_prompt_stays_as_it_is():
    """The prompt is put in once and not looked at again, whatever braces it holds."""
    found = harness(command=["tool", "--cd={cwd}", "--", "{prompt}"]).argv("explain {cwd} and {query}", "/room/cwd")
    assert found == ["tool", "--cd=/room/cwd", "--", "explain {cwd} and {query}"]


def test_query_is_another_word_for_prompt():
    """Both may stand anywhere in a token, and more than once."""
    assert harness(command=["t", "a{query}b{prompt}", "{other}"]).argv("x", "/") == ["t", "axbx", "{other}"]


def test_the_variables_of_a_run_are_exactly_these():
    """Given values as they are, the fresh home for `~` at the start only, and the host's where it has any."""
    found = harness(
        env={"A": "1", "B": "~", "C": "~/.tool", "D": "x~/y", "E": "", "F": "", "G": "", "H": "~user"},
    ).environment("/fresh", {"E": "of the host", "F": "", "Z": "not asked for"})
    expected = {"A": "1", "B": "/fresh", "C": "/fresh/.tool", "D": "x~/y", "E": "of the host", "H": "~user"}
    assert found == expected


def test_home_files_lose_their_tilde():
    """`~/x`, `~x` and `x` are all below the host's home."""
    assert harness(home_files=["~/.a/b", "~.c", "Library/Keychains"]).home_files == (".a/b", ".c", "Library/Keychains")


def test_folders_that_variables_name_below_the_home():
    """They exist before the tool starts."""
    assert harness(env={"A": "~/.tool/data", "B": "~", "C": "/x", "D": "~/"}).home_folders == (".tool/data",)


def agent(**given: Any) -> HarnessAgent:
    return HarnessAgent(name="skill", harness=harness(), staging="b" * 64).model_copy(update=given)


def test_what_tells_agents_apart():
    """Command, variables, skill and timeout do; the name, the place and what a login needs do not."""
    base = agent()
    same = (
        agent(name="other"),
        agent(staging="c" * 64),
        agent(harness=harness(home_files=["x"])),
    )
    others = (
        agent(harness=harness(command=["u", "{prompt}"])),
        agent(harness=harness(env={"MODEL": "m"})),
        agent(harness=None),
        agent(skill=SkillTree(name="s", tree=TREE)),
        agent(trigger=TriggerSkill(name="s", description="d")),
        agent(timeout=1.0),
    )
    assert {one.digest for one in same} == {base.digest}
    assert len({one.digest for one in (base, *others)}) == len(others) + 1


def test_an_agent_has_one_skill():
    """A real skill and one to trigger do not go together."""
    with pytest.raises(ValidationError, match="has both"):
        HarnessAgent(
            name="skill",
            skill=SkillTree(name="s", tree=TREE),
            trigger=TriggerSkill(name="s", description="d"),
            staging=TREE,
        )


def test_agents_are_called_by_their_program():
    """Where a model is named stands the program, without its folder."""
    assert agent(harness=harness(command=["/opt/bin/tool", "{prompt}"])).model == "tool"
    assert agent(harness=None).model == "no harness"

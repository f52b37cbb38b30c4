"""How a coding tool is run once, without anybody there to answer it: the harness of skill evals, as data."""

from __future__ import annotations

import re

from pydantic import field_validator

from trunchray.core.credentials import looks_secret, secret_arguments
from trunchray.core.frozen import Frozen
from trunchray.core.inside import inside

SKILL_DIR = ".agents/skills"
"""Where many tools look for skills."""
_PLACES = re.compile(r"\{(prompt|query|cwd)\}")


class Harness(Frozen):
    """What a harness file says. It is stored with the run, so it holds no credential."""

    command: tuple[str, ...]
    """The argument list of one run. In each token `{prompt}`, or `{query}`, and `{cwd}` stand for what they name."""
    skill_dir: str = SKILL_DIR
    """The folder below the workspace from which the tool reads skills."""
    env: dict[str, str] = {}
    """Variables of the run: a value as it is, `~` for the fresh home folder, "" for what the host has."""
    home_files: tuple[str, ...] = ()
    """Files and folders below the host's home, without `~/`, that appear at the same place in the fresh one."""

    @field_validator("command")
    @classmethod
    def _runs_a_prompt(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not command:
            raise ValueError("is empty; list the program and its arguments, one of them '{prompt}'")
        if not command[0].strip():
            raise ValueError("begins with an empty token; the first one names the program")
        if any("\0" in token for token in command):
            raise ValueError("holds a NUL character, which no argument can")
        if not any("{prompt}" in token or "{query}" in token for token in command):
            raise ValueError(
                f"none of its {len(command)} tokens has '{{prompt}}' in it, so the tool would not be told anything; "
                "add the argument that takes the prompt"
            )
        if places := secret_arguments(command):
            raise ValueError(
                f"token {places[0] + 1} holds something like a credential, which would be stored with the run; "
                'let the tool read it from a variable, and name that in env with the value ""'
            )
        return command

    @field_validator("skill_dir")
    @classmethod
    def _in_the_workspace(cls, folder: str) -> str:
        found = inside(folder)
        if found.split("/")[0] == ".git":
            raise ValueError(f"{folder!r} is git's own folder; name the one from which the tool reads skills")
        return found

    @field_validator("env")
    @classmethod
    def _without_credentials(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} cannot be set; a name has no '=', and neither part a NUL character")
            if looks_secret(name, value) and not _of_home(value):
                raise ValueError(
                    f"the value of {name!r} looks like a credential and would be stored with the run; "
                    'give "" and set the variable where the evals run'
                )
        return env

    @field_validator("home_files")
    @classmethod
    def _in_the_home(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(inside(file.removeprefix("~").removeprefix("/") if file[:1] == "~" else file) for file in files)
        if "." in found:
            raise ValueError("names the whole home folder; name the files that keep the tool logged in")
        return found

    def argv(self, prompt: str, cwd: str) -> list[str]:
        """The argument list of a run. What the prompt holds is not looked at, whatever it says."""
        values = {"prompt": prompt, "query": prompt, "cwd": cwd}
        return [_PLACES.sub(lambda place: values[place[1]], token) for token in self.command]

    def environment(self, home: str, host: dict[str, str]) -> dict[str, str]:
        """What `env` adds to a run whose fresh home folder is `home`; `host` are the variables of this machine.

        A variable that the host does not have, or has empty, is not there.
        """
        given = {name: host.get(name, "") if value == "" else value for name, value in self.env.items()}
        return {name: home + value[1:] if _of_home(self.env[name]) else value for name, value in given.items() if value}

    @property
    def home_folders(self) -> tuple[str, ...]:
        """The folders below the fresh home that variables name, relative to it."""
        return tuple(value[2:] for value in self.env.values() if value.startswith("~/") and value[2:])


def _of_home(value: str) -> bool:
    return value == "~" or value.startswith("~/")

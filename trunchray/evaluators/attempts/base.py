"""Who grades attempts, apart from what is done with the grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that is to be graded."""

    rubric: tuple[str, ...]
    folder: Path
    """A copy of its folder, with `prompt.txt`, `transcript.jsonl`, `stderr.txt` and the workspace as `cwd`."""
    message: str
    """What the tool said last."""
    fixtures: Mapping[str, str]
    """By the path in the workspace, the SHA-256 of each file that was there from the start."""


class Reply(NamedTuple):
    """What a grader said, and a note that may explain why it cannot be used: how its answer ended."""

    text: str
    note: str = ""


class Refused(NamedTuple):
    """A reply that could not be used, and why."""

    reply: str
    why: str


class GraderBackend(Protocol):
    """Safe to share between concurrent trials of one event loop."""

    async def ask(self, attempt: Attempt, refused: Refused | None = None) -> Reply:
        """What it says of the attempt; `refused` is what it said before, which could not be used.

        Raises:
            TrialError: it could not be asked, did not end well, or changed what it was given to look at.
        """
        ...

    def check(self) -> None:
        """Find out before the first attempt whether it can be asked from here.

        Raises:
            UsageError: a key is missing, or there is no such command.
        """
        ...

    async def close(self) -> None:
        """Give back what it holds; it may be asked again afterwards."""
        ...

    @property
    def identity(self) -> JsonValue:
        """What tells it from other graders, as JSON without credentials."""
        ...

"""What the workers of a skill eval need besides its release: files to stage, and where attempts are kept."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, field_validator

from trunchray.core.frozen import Frozen
from trunchray.core.inside import inside
from trunchray.core.release import Sha256

ENGINE = ".trunchray"
"""The folder of the engine's run in the documented run folder."""


def run_around(engine_run: str) -> str:
    """The URI of the documented run folder that an engine's run, or a regrade of one, is in; else that run's own."""
    parts = engine_run.split("/")
    return "/".join(parts[: len(parts) - 1 - parts[::-1].index(ENGINE)]) if ENGINE in parts else engine_run


class Fixture(Frozen):
    """One file that a case finds in its workspace. The run's inputs hold its content."""

    path: str
    """Where in the workspace, with forward slashes."""
    sha256: Sha256

    @field_validator("path")
    @classmethod
    def _in_the_workspace(cls, path: str) -> str:
        if (found := inside(path)) == ".":
            raise ValueError("names the workspace itself")
        return found


class StagedCase(Frozen):
    """What belongs to one case."""

    folder: str = Field(min_length=1)
    """The name of its folder: `create-1`, or `q000` and so on for trigger queries."""
    case: JsonValue = None
    """As it was authored, which becomes `case.json`; None for trigger queries, which have none."""
    fixtures: tuple[Fixture, ...] = ()
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds that one run may take; None: as its agent says."""

    @property
    def name(self) -> str:
        """The id as it was authored, as text; the folder's name where there is none."""
        authored = self.case.get("id") if isinstance(self.case, dict) else None
        return self.folder if authored is None else str(authored)


class Staging(Frozen):
    """All of it for a run. The driver keeps it among the run's inputs, and `HarnessAgent.staging` names it."""

    root: str
    """The URI of the documented run folder."""
    layout: Literal["cases", "queries"] = "cases"
    runs: int = Field(default=1, ge=1)
    """Attempts of each case."""
    cases: dict[str, StagedCase]
    """By the id of the compiled case."""

    def folder(self, config: str, case_id: str, attempt: int) -> str:
        """The folder of an attempt, relative to `root`; `attempt` counts from 1.

        `skill/create-1`, `skill/create-1/run-2` where there are several runs, or `queries/q003-r0`.

        Raises:
            KeyError: there is no such case.
        """
        folder = self.cases[case_id].folder
        if self.layout == "queries":
            return f"queries/{folder}-r{attempt - 1}"
        return f"{config}/{folder}/run-{attempt}" if self.runs > 1 else f"{config}/{folder}"

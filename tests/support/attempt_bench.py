"""A bench that puts cases to a harness, and reads what is kept of that."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.scripted_harness import scripted_harness, steps
from trunchray.adapters.store import Store
from trunchray.adapters.tree import pack
from trunchray.agents.harness.agent import HarnessTool, Surroundings
from trunchray.core.agent import HarnessAgent, SkillTree
from trunchray.core.case import CaseInput
from trunchray.core.digest import sha256
from trunchray.core.staging import Fixture, StagedCase, Staging
from trunchray.core.trial import Trace
from trunchray.errors import HarnessError

DIGITS, HIDDEN = "0badcafe", "5eed0bad"
TOKEN = f"TRIGGER-LOADED-{HIDDEN}"


class Bench:
    """Puts cases to a harness, and reads what is kept of that."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.root = folder, root
        self.inputs: dict[str, bytes] = {}
        self.rooms, self.home = folder / "rooms", folder / "home"
        for each in (self.rooms, self.home):
            each.mkdir()
        self.variables = {"PATH": os.environ["PATH"], "REGION": "of the host", "LANG": "C.UTF-8"}
        self.staged = StagedCase(folder="create-1", case={"id": "create-1", "input": "x", "tags": ["kept"]})
        self.more: dict[str, Any] = {}

    def keep(self, content: bytes) -> str:
        self.inputs[sha256(content)] = content
        return sha256(content)

    def fixture(self, path: str, content: bytes) -> Fixture:
        return Fixture(path=path, sha256=self.keep(content))

    def skill(self, *, script: dict[str, Any] | None = None) -> SkillTree:
        made = self.folder / "briefs"
        (made / "evals").mkdir(parents=True)
        (made / "SKILL.md").write_text("---\nname: briefs\ndescription: Writes product briefs.\n---\nWrite it.\n")
        (made / "scripts").mkdir()
        (made / "scripts" / "count.sh").write_text("#!/bin/sh\n")
        (made / "scripts" / "count.sh").chmod(0o755)
        (made / "__pycache__").mkdir()
        (made / "__pycache__" / "x.pyc").touch()
        (made / "evals" / "scripted.json").write_text(json.dumps(script or {"replies": []}))
        return SkillTree(name="briefs", tree=self.keep(pack(made)))

    def agent(self, **given: Any) -> HarnessAgent:
        return HarnessAgent(**({"name": "skill", "harness": scripted_harness(), "staging": "a" * 64} | given))

    def tool(self, agent: HarnessAgent, layout: str = "cases", runs: int = 1) -> HarnessTool:
        staging = Staging.model_validate(
            {"root": self.root, "layout": layout, "runs": runs, "cases": {"c": self.staged}}
        )
        here: dict[str, Any] = {
            "variables": self.variables,
            "home": self.home,
            "rooms": self.rooms,
            "digits": iter((DIGITS, HIDDEN) * 8).__next__,
            "now": lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
            "grace": 0.1,
        }
        return HarnessTool(agent, staging, self.inputs.__getitem__, Surroundings(**(here | self.more)))

    async def run(self, prompt: str, *, runs: int = 1, attempt: int = 1, layout: str = "cases", **given: Any) -> Trace:
        tool = self.tool(self.agent(**given), layout, runs)
        return await tool.run(CaseInput(prompt=prompt), case_id="c", attempt=attempt)

    async def does(self, *does: dict[str, Any], **given: Any) -> Trace:
        return await self.run(steps(*does), **given)

    async def fails(self, prompt: str, **given: Any) -> HarnessError:
        with pytest.raises(HarnessError) as caught:
            await self.run(prompt, **given)
        return caught.value

    def files(self, attempt: str = "skill/create-1") -> list[str]:
        return Store(f"{self.root}/{attempt}").find()

    def text(self, path: str, attempt: str = "skill/create-1") -> str:
        return Store(f"{self.root}/{attempt}").read(path).decode()

    def timing(self, attempt: str = "skill/create-1") -> dict[str, Any]:
        return json.loads(self.text("timing.json", attempt))

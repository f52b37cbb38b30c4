"""Who takes part in the trials of a worker: the agents that are asked, and who grades what they did."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trunchray.adapters.calling import in_thread, let_go
from trunchray.adapters.clean_room import check_rooms
from trunchray.adapters.input_cache import InputCache
from trunchray.adapters.models.base import ToolDefinition
from trunchray.adapters.models.cache import ReplyCache
from trunchray.adapters.models.connect import build_client
from trunchray.adapters.models.observed import ObservedClient
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.adapters.sandbox.tools import ToolModule
from trunchray.agents.admitted import Admitted
from trunchray.agents.base import Agent, build_agent
from trunchray.agents.toolbox import Tool, Toolbox
from trunchray.core.agent import AgentSpec, HarnessAgent, ModelAgent, PythonAgent
from trunchray.core.grader_spec import HarnessGrader
from trunchray.core.run import RunSpec
from trunchray.core.telemetry import Telemetry
from trunchray.engine.admission import AgentAdmission
from trunchray.engine.program import Program, required
from trunchray.engine.trial import AnyGrader
from trunchray.evaluators.grade import Grader

if TYPE_CHECKING:
    from trunchray.evaluators.attempts.grader import AttemptGrader

# What only some runs need is imported where it is: workers start all the time.


class Cast:
    """Those of one run. `watched`: what models are asked is told to `telemetry`."""

    def __init__(
        self,
        folder: RunFolder,
        release: StoredRelease,
        spec: RunSpec,
        *,
        program: Program | None,
        cache: str | None,
        telemetry: Telemetry,
        watched: bool,
        slots: int,
    ) -> None:
        """`slots` evaluators of authors work at a time.

        Raises:
            UsageError: whoever grades cannot be asked.
        """
        self._folder, self._program, self._telemetry, self._watched = folder, program, telemetry, watched
        self._inputs = InputCache(folder)
        self._toolbox = Toolbox(_tools(release), telemetry=telemetry)
        self._cache = ReplyCache.at(cache) if cache else None
        self._sandbox = EvaluatorSandbox(slots=slots)
        self._attempts, self._grading = _attempt_grader(spec, folder.uri), spec.grading
        self._grader: AnyGrader = self._attempts or self._checks(release)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong and does no harm."""
        return self._cache.warnings if self._cache else ()

    def agent(self, spec: AgentSpec, admission: AgentAdmission) -> Agent:
        """What is under test; `admission` says when it may begin.

        Raises:
            UsageError: it cannot be asked from here.
        """
        match spec:
            case ModelAgent():
                return self._model(spec, admission)
            case PythonAgent():
                return Admitted(self._python(spec), admission)
            case HarnessAgent():
                return Admitted(self._harness(spec), admission)

    def grader(self, admission: AgentAdmission) -> AnyGrader:
        """Who grades what an agent did; `admission` bounds the coding tools at work, those that grade included."""
        if self._attempts and isinstance(self._grading, HarnessGrader):
            return self._attempts.admitted(admission)
        return self._grader

    def check(self, spec: AgentSpec, *, asks: bool) -> None:
        """Find out before the first trial whether an agent can be asked from here, if one `asks`, and who grades it.

        Raises:
            UsageError: a key is missing, say.
        """
        if self._attempts:
            self._attempts.check()
        if asks and isinstance(spec, HarnessAgent) and spec.harness:
            check_rooms()
        elif asks and isinstance(spec, ModelAgent) and spec.mock is None:
            build_client(spec, environ=os.environ)

    async def close(self) -> None:
        """Give back what they hold, but for the agents."""
        if self._program and self._program.judge:
            await let_go(self._program.judge.close)
        if self._attempts:
            await self._attempts.close()
        if self._cache:
            self._cache.close()
        await self._sandbox.close()
        await in_thread(self._inputs.close)

    def _checks(self, release: StoredRelease) -> AnyGrader:
        if program := self._program:
            from trunchray.evaluators.python.grader import PythonGrader  # noqa: PLC0415 - as said above

            return PythonGrader(program.scorers, program.judge, timeout=program.timeout)
        return Grader(_modules(release), self._sandbox)

    def _model(self, spec: ModelAgent, admission: AgentAdmission) -> Agent:
        replay = self._folder.input(spec.mock.replay) if spec.mock and spec.mock.replay else None
        client = build_client(spec, environ=os.environ, replay=replay)
        if self._watched:
            client = ObservedClient(client, spec, self._telemetry)
        return build_agent(spec, client, self._toolbox, admission=admission, cache=self._cache)

    def _python(self, spec: PythonAgent) -> Agent:
        from trunchray.agents.python.agent import PythonTaskAgent  # noqa: PLC0415 - as above

        return PythonTaskAgent(required(self._program, spec).task, timeout=spec.timeout)

    def _harness(self, spec: HarnessAgent) -> Agent:
        from trunchray.agents.harness.agent import HarnessTool  # noqa: PLC0415 - as above
        from trunchray.core.staging import Staging  # noqa: PLC0415 - as above

        staging = Staging.model_validate_json(self._inputs(spec.staging))
        return HarnessTool(spec, staging, self._inputs)


def _attempt_grader(spec: RunSpec, run: str) -> AttemptGrader | None:
    """Who grades the attempts of a skill eval, which are in the folder around its `run`; None where there are none."""
    if not any(isinstance(agent, HarnessAgent) for agent in spec.agents):
        return None
    from trunchray.core.staging import run_around  # noqa: PLC0415 - as above
    from trunchray.evaluators.attempts.build import build_grader  # noqa: PLC0415 - as above

    return build_grader(spec.grading, run_around(run))


def _tools(release: StoredRelease) -> Mapping[str, Tool]:
    codes = {sha: release.module(sha) for sha in {entry.module for entry in release.release.tools}}
    return {
        entry.name: Tool(
            ToolDefinition(entry.name, entry.description, entry.input_schema),
            ToolModule(entry.module, codes[entry.module]),
        )
        for entry in release.release.tools
    }


def _modules(release: StoredRelease) -> Mapping[str, SandboxModule]:
    return {
        key: SandboxModule(key=key, code=release.module(sha), export=export)
        for key, (sha, export) in release.evaluators.items()
    }

"""What a run is: the question that is frozen when it starts and compared when it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from shlex import quote
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from trunchray.core.agent import AgentSpec
from trunchray.core.digest import digest
from trunchray.core.frozen import Frozen, Sparse
from trunchray.core.grader_spec import GraderSpec
from trunchray.core.names import nearest
from trunchray.core.unequal import unequal, was_and_is
from trunchray.errors import UsageError

RunId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,119}$")]
"""The name of a run and of its folder."""
Attempts = Annotated[int, Field(ge=1, le=1000)]
"""How often each case is tried."""
ShardSize = Annotated[int, Field(ge=1, le=1024)]
"""Cases that a worker is given at a time."""
SHARD_SIZE = 128
"""Of them where nobody says otherwise."""
Aim = Literal["run", "retry", "regrade"]
"""Which trials a command does: those that have no row and those that ended in an error that asking again could mend; of
these the latter alone; or those whose answers are stored, because only grading failed."""


class Selection(Frozen):
    """Which cases of the release to run; the default is all of them."""

    evals: tuple[str, ...] | None = None
    cases: tuple[str, ...] | None = None
    sample: int | None = Field(default=None, ge=1)
    """How many cases to draw; a larger sample of the same seed holds the smaller one."""
    seed: int = 0


class Regrades(Frozen):
    """Where answers come from, in place of asking models for them."""

    run: str
    """The run that has them."""


class RunSpec(Sparse):
    """The whole question of a run. It holds no credential: agents name environment variables."""

    unless_none = frozenset({"regrades", "grading"})

    format: Literal[1] = 1
    run_id: RunId
    title: str
    release: str
    """Where the release is stored."""
    release_digest: str
    agents: tuple[AgentSpec, ...] = Field(min_length=1)
    attempts: Attempts = 1
    selection: Selection = Selection()
    seed: int = 0
    """Orders the cases, so that a run that stops early is a random sample."""
    shard_size: ShardSize = SHARD_SIZE
    regrades: Regrades | None = None
    """None: models are asked."""

    grading: GraderSpec | None = None
    """Who grades the attempts of a skill eval by their rubrics; None: nobody does."""

    @model_validator(mode="after")
    def _agents_differ(self) -> Self:
        for name, count in Counter(agent.name for agent in self.agents).items():
            if count > 1:
                raise ValueError(f"{count} models are named {name!r}; give each its own name")
        first: dict[str, str] = {}
        for agent in self.agents:
            if (other := first.setdefault(agent.digest, agent.name)) != agent.name:
                raise ValueError(
                    f"models {other!r} and {agent.name!r} are the same model with the same parameters; "
                    "remove one, or raise attempts to repeat it"
                )
        return self

    def agent(self, name: str) -> AgentSpec:
        return next(agent for agent in self.agents if agent.name == name)

    def agents_named(self, names: Collection[str] | None) -> tuple[AgentSpec, ...]:
        """The agents of these names, in the run's order; None for all.

        Raises:
            UsageError: there is no such agent.
        """
        known = [agent.name for agent in self.agents]
        for name in names or ():
            if name not in known:
                raise UsageError(f"run {self.run_id!r} has no model {name!r}{nearest(name, known)}")
        return tuple(agent for agent in self.agents if names is None or agent.name in names)


def default_run_id(slug: str, release_digest: str, selection: Selection, seed: int, shard_size: int) -> str:
    """A name that the same question always gets, so that repeating a command continues its run."""
    question: list[JsonValue] = [release_digest, selection.model_dump(mode="json"), seed, shard_size]
    return f"{slug[:80]}-{digest(question)[:10]}"


def extend(stored: RunSpec, wanted: RunSpec, *, at: str = "RUN") -> RunSpec:
    """The stored run with the wanted models and attempts added; `at` is where it is stored.

    Raises:
        UsageError: when the two ask different questions; the message names every field that differs.
    """
    differences = _differences(stored, wanted)
    if differences:
        lines = [f"run {stored.run_id!r} exists and asks another question:", *(f"  {each}" for each in differences)]
        raise UsageError("\n".join([*lines, *_remedies(stored, wanted, at)]))
    named = {agent.name: agent for agent in stored.agents} | {agent.name: agent for agent in wanted.agents}
    _refuse_renamed(stored, wanted)
    agents, attempts = tuple(named.values()), max(stored.attempts, wanted.attempts)
    places = {"release": wanted.release, "regrades": wanted.regrades, "grading": wanted.grading}
    return RunSpec.model_validate(stored.model_dump() | {"agents": agents, "attempts": attempts} | places)


def _remedies(stored: RunSpec, wanted: RunSpec, at: str) -> list[str]:
    """The ways on; when the release is another one, which may have been mended, it can grade what is stored."""
    other = "--name" if wanted.regrades else "--run-id"
    ways = [f"choose another {other} to ask it, or go back to the old settings to go on with this run"]
    if not (stored.regrades or wanted.regrades or stored.release_digest == wanted.release_digest):
        command = f"trunchray regrade {quote(at)} --release {quote(wanted.release)}"
        ways.append(f"`{command}` grades the stored answers by the new release")
    return ways


def _differences(stored: RunSpec, wanted: RunSpec) -> list[str]:
    old_digest, new_digest = stored.release_digest, wanted.release_digest
    out = [] if old_digest == new_digest else [_changed(old_digest, new_digest)]
    out += [
        was_and_is(getattr(stored, name), getattr(wanted, name), name)
        for name in ("seed", "shard_size")
        if getattr(stored, name) != getattr(wanted, name)
    ]
    if (stored.regrades is None) != (wanted.regrades is None):
        out.append(f"answers were {_source(stored)} and are now {_source(wanted)}")
    was, now = (spec.grading.asked if spec.grading else None for spec in (stored, wanted))
    out += unequal(was, now, "grader")
    old, new = stored.selection.model_dump(), wanted.selection.model_dump()
    out += [was_and_is(old[name], new[name], f"select.{name}") for name in old if old[name] != new[name]]
    known = {agent.name: agent for agent in stored.agents}
    for agent in wanted.agents:
        before = known.get(agent.name, agent)
        if before.digest != agent.digest:
            changes = ", ".join(unequal(before.asked, agent.asked))
            out.append(f"model {agent.name!r} (give it another name): {changes}")
    return out


def _changed(old_digest: str, new_digest: str) -> str:
    return f"the benchmark has changed since: its release was {old_digest[:12]} and is now {new_digest[:12]}"


def _source(spec: RunSpec) -> str:
    return f"those of {spec.regrades.run!r}" if spec.regrades else "asked for"


def _refuse_renamed(stored: RunSpec, wanted: RunSpec) -> None:
    names = {agent.digest: agent.name for agent in stored.agents}
    for agent in wanted.agents:
        if (name := names.get(agent.digest, agent.name)) != agent.name:
            raise UsageError(
                f"run {stored.run_id!r} knows model {agent.name!r} as {name!r}, with the same parameters; "
                f"call it {name!r} again, or choose another --run-id"
            )

"""Release × agents × attempts → shards. Pure: the same question always gives the same shards.

The cases are put in an order that depends on the seed and on their ids alone, the same for every agent and attempt,
and cut into shards. So a run that stops early has asked all models the same random sample, a larger sample holds the
smaller one, and adding an agent or an attempt only adds shards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trunchray.core.agent import AgentSpec, PythonAgent
from trunchray.core.names import nearest
from trunchray.core.run import RunSpec, Selection
from trunchray.core.trial import Trial, trial_key
from trunchray.errors import UsageError


def keys_digest(keys: Iterable[str]) -> str:
    """One hash for a set of trial keys, whatever their order."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Shard:
    """Some cases for one agent and one attempt number (from 1): what a worker is given at a time."""

    id: str
    agent: AgentSpec
    attempt: int
    case_ids: tuple[str, ...]
    release_digest: str
    agent_digest: str
    """The agent's own, computed once for all its shards."""

    def trials(self) -> list[Trial]:
        name, attempt = self.agent.name, self.attempt
        pairs = zip(self.trial_keys(), self.case_ids, strict=True)
        return [Trial(key=key, case_id=case_id, agent=name, attempt=attempt) for key, case_id in pairs]

    def trial_keys(self) -> list[str]:
        """The trial keys, 64 hex digits each, in the order of `case_ids`."""
        release, agent, attempt = self.release_digest, self.agent_digest, self.attempt
        return [trial_key(release, case_id, agent, attempt) for case_id in self.case_ids]

    def keys_digest(self) -> str:
        return keys_digest(self.trial_keys())


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a run has to do. `shards` are in the order of work; `evals` maps each chosen case to its eval."""

    spec: RunSpec
    shards: tuple[Shard, ...]
    evals: dict[str, str]
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """The transformer that made the cases of each eval, where one did."""

    @property
    def trials(self) -> int:
        return sum(len(shard.case_ids) for shard in self.shards)

    def turns(self) -> dict[str, str]:
        """By shard of a Python task the one that has to be done before: attempts at a case come one after another.

        Models may be asked the same at the same time; a task may keep something from one attempt to the next.
        """
        last: dict[tuple[str, tuple[str, ...]], str] = {}
        found: dict[str, str] = {}
        for shard in self.shards:
            if isinstance(shard.agent, PythonAgent):
                place = (shard.agent_digest, shard.case_ids)
                if place in last:
                    found[shard.id] = last[place]
                last[place] = shard.id
        return found


def make_plan(spec: RunSpec, index: Sequence[tuple[str, str]], sources: Mapping[str, str] | None = None) -> Plan:
    """The plan of a run over a release whose cases are `index`: pairs of case id and eval id, in release order.

    `sources` as in `Plan`; what is run does not depend on it.

    Raises:
        UsageError: the selection names an unknown eval or case, or chooses no case.
    """
    chosen = select(spec.selection, index)
    evals = dict(chosen)
    order = shuffled(evals, spec.seed)
    size = spec.shard_size
    chunks = [tuple(order[start : start + size]) for start in range(0, len(order), size)]
    digests = [agent.digest for agent in spec.agents]
    # Chunk by chunk through all agents, so that a run that stops early has asked each of them about as much.
    shards = tuple(
        Shard(f"{digest[:12]}-{attempt:03d}-{number:04d}", agent, attempt, chunk, spec.release_digest, digest)
        for attempt in range(1, spec.attempts + 1)
        for number, chunk in enumerate(chunks)
        for digest, agent in zip(digests, spec.agents, strict=True)
    )
    return Plan(spec, shards, evals, sources or {})


def shuffled(case_ids: Iterable[str], seed: int) -> list[str]:
    """The cases ordered by a hash of the seed and each id: no case's place depends on which others are there."""
    return sorted(case_ids, key=lambda case_id: hashlib.sha256(f"{seed}\n{case_id}".encode()).digest())


def select(selection: Selection, index: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The chosen (case id, eval id) pairs, in release order."""
    _known("eval", selection.evals, {eval_id for _, eval_id in index})
    _known("case", selection.cases, {case_id for case_id, _ in index})
    evals, cases = selection.evals, selection.cases
    chosen = [
        (case_id, eval_id)
        for case_id, eval_id in index
        if (evals is None or eval_id in evals) and (cases is None or case_id in cases)
    ]
    if not chosen:
        raise UsageError("the selection leaves no case to run; widen select.evals and select.cases")
    if selection.sample is None:
        return chosen
    sample = set(shuffled((case_id for case_id, _ in chosen), selection.seed)[: selection.sample])
    return [pair for pair in chosen if pair[0] in sample]


def _known(what: str, wanted: tuple[str, ...] | None, known: set[str]) -> None:
    for name in wanted or ():
        if name not in known:
            raise UsageError(f"select.{what}s: the release has no {what} {name!r}{nearest(name, known)}")

"""The answers that a stored run has, to be graded anew by another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from trunchray.adapters import parts
from trunchray.core.plan import Shard
from trunchray.core.trial import Asked
from trunchray.engine.shard_rows import shard_rows
from trunchray.engine.stored import open_run

KEPT = 16
"""Shards whose answers are kept: two runs need not have the same cases in a shard."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of asking, by case; and the paths of parts that should hold more of it and cannot be read."""

    asked: Mapping[str, Asked]
    damaged: tuple[str, ...] = ()


class StoredAnswers:
    """Finds the answers of a run in its committed rows, as they are when they are asked for."""

    def __init__(self, run_uri: str) -> None:
        """Read the run's plan.

        Raises:
            UsageError: there is no run at `run_uri`.
            ReleaseError: its release is gone or damaged.
        """
        self._folder, plan = open_run(run_uri)
        self._shards: dict[tuple[str, int], list[Shard]] = {}
        for shard in plan.shards:
            self._shards.setdefault((shard.agent_digest, shard.attempt), []).append(shard)
        chunks = next(iter(self._shards.values()))  # the same for every agent and attempt
        self._chunk = {case_id: number for number, shard in enumerate(chunks) for case_id in shard.case_ids}
        self._read = lru_cache(KEPT)(self._answers)

    def of(self, shard: Shard) -> Answers:
        """Those to the cases of a shard of another run, by the same agent at the same attempt."""
        shards = self._shards.get((shard.agent_digest, shard.attempt), [])
        wanted = set(shard.case_ids)
        numbers = sorted({self._chunk[case_id] for case_id in wanted & self._chunk.keys()})
        found = [self._read(shard.agent_digest, shard.attempt, number) for number in numbers] if shards else []
        asked = {case_id: one for answers in found for case_id, one in answers.asked.items() if case_id in wanted}
        return Answers(asked, tuple(path for answers in found for path in answers.damaged))

    def _answers(self, agent_digest: str, attempt: int, number: int) -> Answers:
        shard = self._shards[agent_digest, attempt][number]
        receipt = self._folder.last_commit(shard.id)
        if receipt is None or not receipt.is_of(shard.keys_digest()):
            return Answers({})
        rows, damaged = shard_rows(shard, receipt, self._folder)
        case_of = dict(zip(shard.trial_keys(), shard.case_ids, strict=True))
        asked = {case_of[key]: one for key, one in parts.answers(rows)}
        return Answers(asked, tuple(f"{self._folder.uri}/{path}" for path in damaged))

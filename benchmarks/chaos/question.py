"""What the disturbed runs are about: answers that are a hash of the question, so that every verdict is known before."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.releases import make_release

CUSTOM = 25
"""Every so many cases one is graded by a function in the sandbox."""
GRADE = b"""
export default { evaluate: ({ output }) => ({ passed: output[0] >= "8", score: parseInt(output[0], 16) / 15 }) }
"""


def answer(model: str, prompt: str) -> str:
    """What the provider says: sixteen hexadecimal digits."""
    return hashlib.sha256(f"{model} {prompt}".encode()).hexdigest()[:16]


def check(number: int) -> dict[str, object]:
    if number % CUSTOM == 0:
        return {"kind": "custom", "evaluatorKey": "e#default"}
    return {"kind": "contains", "expected": f"{number % 16:x}"}


def verdict(number: int, output: str) -> tuple[bool, float]:
    """Passed and score, as the check of the `number`-th case has to find them."""
    if number % CUSTOM == 0:
        return output[0] >= "8", int(output[0], 16) / 15
    passed = f"{number % 16:x}" in output
    return passed, float(passed)


@dataclass(frozen=True)
class Question:
    """So many cases for each of so many models, of which each may have `permits` requests in flight."""

    cases: int
    models: int
    permits: int
    shard_size: int
    uri: str
    """Where its runs are kept."""
    base_url: str

    @property
    def trials(self) -> int:
        return self.cases * self.models

    @property
    def names(self) -> list[str]:
        return [f"m{number}" for number in range(self.models)]

    @property
    def out_with_a_driver(self) -> int:
        """Trials of the shards that a driver may have given out at a time."""
        return self.models * (self.permits + 8 * self.shard_size)

    def compile(self) -> str:
        """The URI of the release."""
        return make_release(self.uri, self.cases, check=check, evaluator=GRADE, title="Chaos").uri

    def config(self, folder: Path, run_id: str, release: str, pool: str) -> Path:
        """Write the run config for one run."""
        pacing = {"max_in_flight": self.permits, "max_retries": 0}
        settings: dict[str, Any] = {
            "release": release,
            "out": self.uri,
            "run_id": run_id,
            "pool": pool,
            "shard_size": self.shard_size,
            "models": [
                {"id": f"local/{name}", "name": name, "base_url": self.base_url, "pacing": pacing}
                for name in self.names
            ],
        }
        path = folder / f"{run_id}.yaml"
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return path

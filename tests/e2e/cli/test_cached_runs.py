"""A cache of answers, as run configs name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from support.commands import CommandLine
from support.provider import CountingProvider
from trunchray.adapters.releases import StoredRelease


def write(release: StoredRelease, cache: str, **changes: Any) -> Path:
    Path("configs").mkdir(exist_ok=True)
    path = Path("configs") / "run.yaml"
    config = {"release": release.uri, "cache": cache, "run_id": "r", "models": [{"id": "mock/echo"}]} | changes
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def test_runs_share_a_cache(here: Path, release: StoredRelease, trunchray: CommandLine):
    """The cache stands where the config says, and the second run says what it found there."""
    with CountingProvider() as provider:
        models = [{"id": "local/m", "name": "m", "base_url": provider.base_url}]
        first = trunchray("run", write(release, "../answers", models=models), "--json").json["models"][0]
        second = trunchray("run", write(release, "../answers", models=models), "--run-id", "s")
        assert provider.asked.total() == 8
    assert (first["cache_hits"], first["passed"]) == (0, 8)
    assert len([path for path in (here / "answers").rglob("*") if path.is_file()]) == 8
    assert "m: 8 model calls answered from the cache, which saved 80 tokens\n" in second.out
    assert trunchray("report", "runs/s", "--json").json["models"][0]["cache_hits"] == 8


def test_a_cache_in_memory(release: StoredRelease, trunchray: CommandLine):
    """Any kind of store will do."""
    for run, hits in (("a", 0), ("b", 8)):
        outcome = trunchray("run", write(release, "memory://answers-of-a-test"), "--run-id", run, "--json")
        assert outcome.json["models"][0]["cache_hits"] == hits


def test_a_cache_that_cannot_be(here: Path, release: StoredRelease, trunchray: CommandLine):
    """A kind of store that there is not is refused; one that fails is said once, and costs nothing but money."""
    assert "cannot open 'nope://x/y'" in trunchray.refused("run", write(release, "nope://x/y"))
    assert "cache: must not be empty" in trunchray.refused("run", write(release, ""))
    (here / "file").write_bytes(b"")
    outcome = trunchray("run", write(release, "../file"))
    assert outcome.code == 0
    assert outcome.err.count("warning: ") == 1
    assert "cannot be used (Not a directory); models are asked instead" in outcome.err

"""What is stored of a run: its question, its plan, its release and which commits count."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager

from trunchray.adapters.releases import StoredRelease, open_release
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.store import Store
from trunchray.core.agent import HarnessAgent
from trunchray.core.plan import Plan, make_plan
from trunchray.core.receipt import Receipt
from trunchray.core.run import RunSpec
from trunchray.errors import ReleaseError, StoreError, UsageError

MOST_ALIKE = 3
"""Runs that are suggested when there is none of the name that was given."""


def open_run(run_uri: str) -> tuple[RunFolder, Plan]:
    """A stored run and its plan.

    Raises:
        UsageError: there is no run at `run_uri`.
        ReleaseError: its release is gone or damaged.
    """
    folder = RunFolder(run_uri)
    return folder, stored_plan(stored_spec(folder))


def stored_spec(folder: RunFolder) -> RunSpec:
    """The question of a stored run.

    Raises:
        UsageError: there is no run.
    """
    if spec := folder.spec():
        return spec
    if runs := _runs_in(folder.store, ""):
        known = f"the runs in it are {', '.join(runs)}"
    elif alike := _named_alike(folder.uri):
        known = f"did you mean {' or '.join(map(repr, alike))}?"
    else:
        known = "give the folder <out>/<run id>"
    raise UsageError(f"no run at {folder.uri!r}: it holds no run.json; {known}")


def _runs_in(store: Store, begin: str) -> list[str]:
    return [name for name in store.names() if name.startswith(begin) and store.exists(f"{name}/run.json")]


def _named_alike(uri: str) -> list[str]:
    """The newest runs beside it whose names begin as its own does: those of an evaluation have its name and more."""
    parent, _, name = uri.rstrip("/").rpartition("/")
    try:
        runs = _runs_in(Store(parent), f"{name}-") if parent and name else []
    except (StoreError, UsageError):  # a bucket that may not be listed, say
        return []
    return [f"{parent}/{run}" for run in sorted(runs)[-MOST_ALIKE:]]


def stored_plan(spec: RunSpec) -> Plan:
    """The plan of a stored run.

    Raises:
        ReleaseError: its release is gone or damaged.
    """
    with _needed_by(spec):
        release = open_release(spec.release)
        cases = release.cases()
        return make_plan(spec, cases.index, release.sources(cases))


def stored_release(spec: RunSpec) -> StoredRelease:
    """The release of a stored run.

    Raises:
        ReleaseError: it is gone.
    """
    with _needed_by(spec):
        return open_release(spec.release)


def counting_commits(plan: Plan, folder: RunFolder, agents: Collection[str] | None = None) -> dict[str, Receipt]:
    """The commits of the plan's shards, or of those of some agents, whole or not.

    One of another plan under the same shard id does not count.
    """
    wanted = (shard for shard in plan.shards if agents is None or shard.agent.name in agents)
    digests = {shard.id: shard.keys_digest() for shard in wanted}
    return {shard: found for shard, found in folder.commits().items() if found.is_of(digests.get(shard))}


@contextmanager
def _needed_by(spec: RunSpec) -> Generator[None]:
    """Say for which run a release is needed, and where it can be had."""
    try:
        yield
    except ReleaseError as e:
        skill = any(isinstance(agent, HarnessAgent) for agent in spec.agents)
        again = "" if skill else "; the `trunchray run` command that started the run also compiles it again"
        raise ReleaseError(f"the release of run {spec.run_id!r} cannot be read: {e}. Put it back{again}") from e

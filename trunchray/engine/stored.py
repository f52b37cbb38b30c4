"""What is stored of a run: its question, its plan, its release and its rows."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from trunchray.adapters import parts
from trunchray.adapters.releases import StoredRelease, open_release
from trunchray.adapters.runs import RunFolder
from trunchray.core.plan import Plan, Shard, make_plan
from trunchray.core.receipt import Receipt
from trunchray.core.run import RunSpec
from trunchray.errors import ReleaseError, StoreError, UsageError


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
    runs = [name for name in folder.store.names() if folder.store.exists(f"{name}/run.json")]
    known = f"the runs in it are {', '.join(runs)}" if runs else "give the folder <out>/<run id>"
    raise UsageError(f"no run at {folder.uri!r}: it holds no run.json; {known}")


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


def shard_rows(shard: Shard, receipt: Receipt, folder: RunFolder) -> tuple[parts.Rows, list[str]]:
    """The shard's counted rows in plan order, and the paths of parts that should hold some and cannot be read."""
    contents, bad = folder.read_parts(receipt)
    tables: list[parts.Rows] = []
    for path, content in contents:
        try:
            tables.append(parts.decode(content))
        except StoreError:
            bad.append(path)
    return parts.choose(tables, shard.trial_keys()), bad


@contextmanager
def _needed_by(spec: RunSpec) -> Generator[None]:
    """Say for which run a release is needed, and where it can be had."""
    try:
        yield
    except ReleaseError as e:
        raise ReleaseError(
            f"the release of run {spec.run_id!r} cannot be read: {e}. "
            "Put it back; the `trunchray run` command that started the run also compiles it again"
        ) from e

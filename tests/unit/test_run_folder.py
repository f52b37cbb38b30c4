from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from trunchray.adapters.lease import HeldLease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.core.receipt import Counts, PartRef, Receipt
from trunchray.core.run import RunSpec
from trunchray.errors import StoreError, UsageError


@pytest.fixture
def folder() -> RunFolder:
    return RunFolder(f"memory://{uuid.uuid4().hex}")


def receipt(shard: str = "s", worker: str = "w", parts: tuple[PartRef, ...] = (), attempt: int = 1) -> Receipt:
    counts = Counts(passed=1, failed=2, error=3, tokens=4)
    return Receipt(shard=shard, attempt=attempt, parts=parts, keys_digest=worker, counts=counts)


def spec(title: str) -> RunSpec:
    agents = (ModelAgent(name="a", model="mock/echo"),)
    return RunSpec(run_id="r", title=title, release="x", release_digest="d", agents=agents)


def test_a_run_is_frozen_and_found_again(folder: RunFolder):
    """The question of a run comes back as it was; where there is none, there is none."""
    assert folder.spec() is None
    folder.freeze(spec("T"))
    assert folder.spec() == spec("T")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2}', b'{"format": 1, "surprise": 1}', b"\xff"])
def test_a_run_that_cannot_be_read_is_refused(folder: RunFolder, content: bytes):
    """A damaged or younger run.json is named, and never taken for an empty folder."""
    folder.store.write("run.json", content)
    with pytest.raises(UsageError, match=r"run\.json is not a run that this version can read"):
        folder.spec()


def test_the_highest_commit_counts(folder: RunFolder):
    """Later commits of a shard replace earlier ones; each shard has one that counts."""
    for worker in ("first", "second"):
        assert folder.commit(receipt("a", worker)).keys_digest == worker
    folder.commit(receipt("b", "only"))
    assert {shard: found.keys_digest for shard, found in folder.commits().items()} == {"a": "second", "b": "only"}
    last = folder.last_commit("a")
    assert last
    assert last.keys_digest == "second"
    assert folder.last_commit("c") is None


def test_ten_commits_are_ordered_by_number(folder: RunFolder):
    """The tenth commit is later than the ninth, whatever their names sort like."""
    for number in range(10):
        folder.commit(receipt("a", f"w{number}"))
    assert folder.commits()["a"].keys_digest == "w9"


def test_of_two_drivers_that_commit_the_same_one_counts(folder: RunFolder):
    """When another driver took the number in the meantime, its commit is the one that counts, for both."""
    slow, quick = RunFolder(folder.uri), RunFolder(folder.uri)
    assert slow.commits() == quick.commits() == {}
    ours, theirs = receipt("a", attempt=1), receipt("a", attempt=2)
    assert quick.commit(theirs) == theirs
    assert slow.commit(ours) == theirs
    assert folder.commits() == slow.commits() == quick.commits() == {"a": theirs}
    assert folder.store.names("commits/a") == ["1.json"]


def test_a_driver_that_slept_cannot_have_the_last_word(folder: RunFolder):
    """Whatever was committed since a driver looked at the run counts more than what that driver commits."""
    folder.commit(receipt("a", attempt=1))
    slow = RunFolder(folder.uri)
    slow.commits()
    quick = RunFolder(folder.uri)
    quick.commit(receipt("a", attempt=2))
    quick.commit(receipt("a", attempt=3))
    assert slow.commit(receipt("a", attempt=4)).attempt == 2
    assert folder.commits()["a"].attempt == 3


def test_a_commit_of_another_plan_is_passed(folder: RunFolder):
    """A commit that holds other trials counts for nobody, so it does not stand in for ours."""
    slow = RunFolder(folder.uri)
    slow.commits()
    folder.commit(receipt("a", "other trials"))
    assert slow.commit(receipt("a", "ours")).keys_digest == "ours"
    assert folder.commits()["a"].keys_digest == "ours"


def test_a_shard_that_ended_early_never_counts_in_the_place_of_a_whole_one(folder: RunFolder):
    """Of two drivers' commits of one shard, the one that lacks fewer trials counts."""
    whole = receipt("a", "all").model_copy(update={"plan_digest": "all"})
    part = receipt("a", "some").model_copy(update={"plan_digest": "all", "missing": 3})
    slow, quick = RunFolder(folder.uri), RunFolder(folder.uri)
    assert slow.commits() == quick.commits() == {}
    assert quick.commit(part) == part
    assert slow.commit(whole) == whole
    assert quick.commit(part) == whole
    assert folder.commits() == {"a": whole}


@pytest.mark.parametrize(("missing", "keys", "counts"), [(0, "all", True), (0, "some", False), (2, "some", True)])
def test_a_receipt_is_of_a_shard_by_the_trials_it_plans(missing: int, keys: str, counts: bool):
    """A whole one holds exactly those; one that ended early says which they are."""
    assert receipt("a", keys).model_copy(update={"plan_digest": "all", "missing": missing}).is_of("all") is counts
    assert not receipt("a", keys).model_copy(update={"plan_digest": "other", "missing": missing}).is_of("all")


def test_the_same_parts_are_committed_once(folder: RunFolder):
    """A shard of which nothing more was run since its last commit gets no further one."""
    part = folder.add_part("a", b"rows", 3)
    for attempt in (1, 2):
        found = receipt("a", "some", attempt=attempt, parts=(part,)).model_copy(update={"missing": 2})
        assert folder.commit(found).attempt == 1
    assert folder.store.names("commits/a") == ["1.json"]
    other = receipt("a", "all of another plan", attempt=3, parts=(part,))
    assert folder.commit(other).attempt == 3


def test_a_question_is_frozen_once(folder: RunFolder):
    """Of two that start a run under one name with different questions, one is told."""
    first, second = spec("first"), spec("second")
    folder.freeze(first, first=True)
    folder.freeze(first, first=True)
    with pytest.raises(UsageError, match="another process has just started a run"):
        folder.freeze(second, first=True)
    assert folder.spec() == first


@pytest.mark.parametrize("place", ["commits/a/1.json", "run.json", "lease.json", "claims", "commits", "commits/a"])
def test_links_that_lead_nowhere(place: str, tmp_path: Path):
    """A link to something that is gone is a missing object or an error that names it, never a crash."""
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tmp_path / "gone")
    folder = RunFolder(str(tmp_path))
    assert folder.spec() is None
    with suppress(StoreError):
        HeldLease.take(folder.store)
    with suppress(StoreError):
        folder.freeze(spec("r"), first=True)
    with suppress(StoreError):
        folder.commits()
    with suppress(StoreError):
        folder.last_commit("a")
    with suppress(StoreError):
        folder.commit(receipt("a"))


def test_a_commit_that_leads_nowhere_is_named(tmp_path: Path):
    """A commit that is listed and cannot be read stops the run with its place, not with a wrong count."""
    folder = RunFolder(str(tmp_path))
    (tmp_path / "commits" / "a").mkdir(parents=True)
    (tmp_path / "commits" / "a" / "1.json").symlink_to(tmp_path / "gone")
    with pytest.raises(StoreError, match=r"commits/a/1\.json is there but cannot be read; is it a link"):
        folder.commits()
    with pytest.raises(StoreError, match=r"commits/a/1\.json is there but cannot be read; is it a link"):
        folder.last_commit("a")


def test_a_damaged_commit_is_named(folder: RunFolder):
    """A commit that cannot be read stops the run with its place and a remedy, not with a wrong count."""
    folder.commit(receipt("a"))
    folder.store.write("commits/a/1.json", b'{"receipt": {}}')
    with pytest.raises(StoreError, match=r"commits/a/1\.json is damaged; delete it"):
        RunFolder(folder.uri).commits()


def test_parts_are_checked_against_their_receipt(folder: RunFolder):
    """Parts come back in the order they were listed; those that are gone or changed are named."""
    parts = [folder.add_part("a", name, 1) for name in (b"one", b"two", b"three")]
    folder.store.write(parts[1].path, b"twO")
    gone = PartRef(path="parts/a/gone.parquet", rows=1, sha256="0")
    contents, damaged = folder.read_parts(receipt("a", parts=(*parts[::-1], gone)))
    assert contents == [(parts[2].path, b"three"), (parts[0].path, b"one")]
    assert damaged == [parts[1].path, gone.path]
    assert folder.part_names("a") == sorted(part.path for part in parts)


def test_inputs_are_kept_by_content(folder: RunFolder):
    """A file that workers need is stored once under its hash, and a changed one is refused."""
    name = folder.keep_input(b"recorded")
    assert folder.keep_input(b"recorded") == name
    assert folder.input(name) == b"recorded"
    folder.store.write(f"inputs/{name}", b"changed")
    with pytest.raises(StoreError, match="damaged"):
        folder.input(name)
    with pytest.raises(StoreError, match="gone"):
        folder.input("0" * 64)


def test_progress_that_cannot_be_read_is_no_progress(folder: RunFolder):
    """The snapshot is a courtesy: a missing or torn one is None."""
    assert folder.progress() is None
    folder.write_progress({"rows": 1})
    assert folder.progress() == {"rows": 1}
    folder.store.write("progress.json", b"{")
    assert folder.progress() is None

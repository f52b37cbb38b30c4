from __future__ import annotations

import uuid

import pytest

from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import ModelAgent
from trunchray.core.receipt import Counts, PartRef, Receipt
from trunchray.core.run import RunSpec
from trunchray.errors import StoreError, UsageError


@pytest.fixture
def folder() -> RunFolder:
    return RunFolder(f"memory://{uuid.uuid4().hex}")


def receipt(shard: str = "s", worker: str = "w", parts: tuple[PartRef, ...] = ()) -> Receipt:
    counts = Counts(passed=1, failed=2, error=3, tokens=4)
    return Receipt(shard=shard, attempt=1, parts=parts, keys_digest=worker, counts=counts)


def test_a_run_is_frozen_and_found_again(folder: RunFolder):
    """The question of a run comes back as it was; where there is none, there is none."""
    assert folder.spec() is None
    spec = RunSpec(
        run_id="r", title="T", release="x", release_digest="d", agents=(ModelAgent(name="a", model="mock/echo"),)
    )
    folder.freeze(spec)
    assert folder.spec() == spec


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
    theirs = receipt("a", "theirs")
    ours = receipt("a", "ours")
    folder.commit(theirs)
    stolen = folder.store.read("commits/a/1.json")

    class Slow(RunFolder):
        def _last(self, shard: str) -> int:
            return 0  # looked before the other one wrote

    slow = Slow(folder.uri)
    assert slow.commit(ours).keys_digest == "theirs"
    assert folder.store.read("commits/a/1.json") == stolen


def test_a_damaged_commit_is_named(folder: RunFolder):
    """A commit that cannot be read stops the run with its place and a remedy, not with a wrong count."""
    folder.commit(receipt("a"))
    folder.store.write("commits/a/1.json", b'{"receipt": {}}')
    with pytest.raises(StoreError, match=r"commits/a/1\.json is damaged; delete it"):
        folder.commits()


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

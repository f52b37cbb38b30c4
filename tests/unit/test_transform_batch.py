"""Batch manifests, and files that are written together or not at all."""

from __future__ import annotations

import json

import pytest

from trunchray.errors import AuthoringError, UsageError
from trunchray.frontends.benchmark.batch import ExportJob, read_batch
from trunchray.frontends.benchmark.pending import Pending
from trunchray.frontends.benchmark.position import Position

JOB = {"id": "a", "transformer": "t.ts", "sources": {"rows": "r"}, "output": "o"}
HASH = "0" * 64


def batch(tmp_path, value) -> list[ExportJob]:
    path = tmp_path / "m.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return read_batch(path)


def test_a_manifest(tmp_path):
    """Jobs keep their order; the format is JSON Lines unless said otherwise."""
    jobs = batch(tmp_path, {"protocolVersion": 1, "jobs": [JOB | {"id": "b", "format": "json"}, JOB]})
    assert [(job.id, job.format, job.receipt) for job in jobs] == [
        ("b", "json", "o.manifest.json"),
        ("a", "jsonl", "o.manifest.json"),
    ]


BAD = {
    "no JSON": ("{", "is not valid JSON"),
    "another version": ({"protocolVersion": 2, "jobs": [JOB]}, "protocolVersion: must be 1, not 2"),
    "no jobs": ({"protocolVersion": 1}, "jobs: is required"),
    "no output": ({"protocolVersion": 1, "jobs": [{**JOB, "output": None}]}, "output: must be a string"),
    "count": ({"protocolVersion": 1, "jobs": [JOB | {"expectedCaseCount": 0}]}, "must be at least 1, not 0"),
    "id": ({"protocolVersion": 1, "jobs": [JOB | {"id": "A"}]}, "'A' is not a valid id"),
}


@pytest.mark.parametrize(("value", "message"), BAD.values(), ids=BAD)
def test_bad_manifests(tmp_path, value, message):
    """Every mistake is named with its field."""
    with pytest.raises(AuthoringError, match=message):
        batch(tmp_path, value)


def test_no_manifest(tmp_path):
    """A manifest that is not there is the caller's mistake."""
    with pytest.raises(UsageError, match="cannot read"):
        read_batch(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("written", "expected"), [(None, {}), (HASH, {"rows": HASH}), ({"rows": HASH}, {"rows": HASH})]
)
def test_expected_hashes(written, expected):
    """One hash for the only source, or hashes by name."""
    found = []
    assert ExportJob(**JOB, expectedSourceSha256=written).expected_hashes(Position("m"), found) == expected
    assert found == []


@pytest.mark.parametrize("written", [3, {"x": HASH}, {"rows": "ABC"}, {"rows": None}])
def test_bad_expected_hashes(written):
    """Anything else is refused, not ignored."""
    found = []
    assert ExportJob(**JOB, expectedSourceSha256=written).expected_hashes(Position("m"), found) == {}
    assert len(found) == 1


def test_pending_files_appear_together(tmp_path):
    """Nothing is there before `write`, everything afterwards, and no other file."""
    (tmp_path / "spool").mkdir()
    pending = Pending(tmp_path / "spool")
    pending.add(tmp_path / "out" / "deep" / "a", b"1")
    pending.add(tmp_path / "out" / "b", b"2")
    assert not (tmp_path / "out").exists()
    pending.write()
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {"a": b"1", "b": b"2"}


def test_pending_files_that_cannot_be_written(tmp_path):
    """When one file cannot be written, those that were there before stay as they were."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "file").touch()
    pending = Pending(tmp_path / "spool")
    pending.add(tmp_path / "a", b"after")
    pending.add(tmp_path / "file" / "b", b"")
    with pytest.raises(UsageError, match="cannot write"):
        pending.write()
    assert (tmp_path / "a").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file", "spool"]

"""Files on this machine and in stores, and what is written in them relative to where they stand."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from trunchray.adapters.location import absolute, beside, is_uri, read_file
from trunchray.adapters.store import Store
from trunchray.errors import UsageError
from trunchray.frontends.agents import read_recorded
from trunchray.frontends.run_config import RunConfig, read_run_config

RECORDED = b'{"case_id": "a", "output": "o"}\n'


@pytest.fixture
def store() -> Store:
    """A folder in a store that lasts as long as this process."""
    return Store(f"memory://{uuid.uuid4().hex}/configs")


def written(store: Store, text: str, name: str = "run.yaml") -> RunConfig:
    store.write(name, text.encode())
    return read_run_config(f"{store.uri}/{name}")


@pytest.mark.parametrize(
    ("file", "location", "found"),
    [
        ("configs/run.yaml", "x.jsonl", "configs/x.jsonl"),
        ("configs/run.yaml", "../x", "configs/../x"),
        ("/a/run.yaml", "/b/x", "/b/x"),
        ("file:///a/run.yaml", "x", "/a/x"),
        ("run.yaml", "s3://b/x", "s3://b/x"),
        ("s3://b/c/run.yaml", "x.jsonl", "s3://b/c/x.jsonl"),
        ("s3://b/c/run.yaml", ".", "s3://b/c"),
        ("s3://b/c/run.yaml", "../runs", "s3://b/runs"),
        ("s3://b/run.yaml", "./runs/", "s3://b/runs"),
        ("s3://b/c/run.yaml", "/data/x", "/data/x"),
        ("s3://b/c/run.yaml", "file:///data/x", "file:///data/x"),
    ],
)
def test_where_a_written_location_leads(file: str, location: str, found: str):
    """Relative paths are taken from where the file stands, be that a folder or a place in a store."""
    assert beside(file, location) == found


def test_which_locations_are_uris():
    """A file:// URI is a path of this machine; of another scheme, it is a store's."""
    assert [is_uri(location) for location in ("a/b", "file:///a", "s3://b/a")] == [False, False, True]
    assert absolute("s3://b/a") == "s3://b/a"
    assert absolute("file:///a") == "/a"
    assert Path(absolute("a")).is_absolute()


def test_a_config_in_a_store(store: Store):
    """A run config, the models it includes and their recorded outputs are read from anywhere, each from its place."""
    store.write("models/m.yaml", b"models: [{id: mock/replay, name: r, mock: {replay: ../recorded/r.jsonl}}]")
    store.write("recorded/r.jsonl", RECORDED)
    config = written(
        store,
        "release: ../releases/one\nout: runs\ncache: /cache\nmodels:\n- include: models/m.yaml\n"
        "- {id: mock/replay, mock: {replay: recorded/r.jsonl}}\n",
    )
    root = store.uri.rpartition("/")[0]
    assert (config.release, config.out, config.cache) == (f"{root}/releases/one", f"{root}/configs/runs", "/cache")
    assert read_recorded(config.models) == {f"{store.uri}/recorded/r.jsonl": RECORDED}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "release: r\nmodels:\n- {id: mock/echo}\n- {id: mock/echo2}",
            "run.yaml:4: models[1]: there is no model 'mock/echo2'",
        ),
        ("release: r\nmodel: [{id: mock/echo}]", "run.yaml:2: model: unknown key — did you mean 'models'?"),
        ("release: r\nmodels: [", "run.yaml:2: not YAML"),
        ("release: r\nmodels: [{include: none.yaml}]", "no such file: 'memory://"),
        ("- release", "run.yaml: a run config is a mapping"),
    ],
)
def test_what_is_wrong_in_a_config_in_a_store(text: str, message: str, store: Store):
    """The same messages as for a file on disk, with the object's URI and line."""
    with pytest.raises(UsageError) as refused:
        written(store, text)
    assert message in str(refused.value)
    assert store.uri in str(refused.value)


def test_files_that_cannot_be_had(store: Store, tmp_path: Path):
    """A missing object, a missing file, no file at all and no such kind of store are each named."""
    with pytest.raises(UsageError, match=r"^no such file: 'memory://.*/run\.yaml'$"):
        read_run_config(f"{store.uri}/run.yaml")
    with pytest.raises(UsageError, match=r"^cannot read the recorded outputs '.*r\.jsonl': No such file or directory$"):
        read_file(f"{store.uri}/r.jsonl", what="the recorded outputs")
    with pytest.raises(
        UsageError, match=r"^cannot open 's3://bucket': it names no file in a folder; give a path, or a URI"
    ):
        read_file("s3://bucket")
    with pytest.raises(UsageError, match=r"^cannot open 'nope://a': .*; give a path or a URI such as s3://"):
        read_file("nope://a/run.yaml")
    (tmp_path / "large.yaml").write_bytes(bytes(2 * 2**20 + 1))
    with pytest.raises(UsageError, match=r"large\.yaml': it is larger than 2 MiB$"):
        read_file(f"file://{tmp_path}/large.yaml", most=2 * 2**20)

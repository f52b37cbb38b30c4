from __future__ import annotations

import re
import threading
import uuid
from importlib.util import find_spec
from pathlib import Path

import pytest

from trunchray.adapters.store import Store
from trunchray.errors import StoreError, UsageError


@pytest.fixture(params=["local", "memory", "pattern"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """In a folder, in memory, and in a folder whose name looks like a pattern of names."""
    places = {"local": "s", "pattern": "[a-z] *?{b}"}
    return Store(f"memory://{uuid.uuid4().hex}" if request.param == "memory" else str(tmp_path / places[request.param]))


def test_what_is_written_is_read_back(store: Store):
    """An object is what was last written under its name, and names below a folder are listed."""
    store.write("a/b.json", b"1")
    store.write("a/b.json", b"2")
    store.write("a/c/d.json", b"3")
    assert store.read("a/b.json") == b"2"
    assert store.names("a") == ["b.json", "c"]
    assert store.find("a") == ["a/b.json", "a/c/d.json"]
    assert store.child("a").read("c/d.json") == b"3"
    assert store.read_many(["a/b.json", "a/c/d.json"]) == {"a/b.json": b"2", "a/c/d.json": b"3"}


def test_what_is_there_is_read_and_the_end_of_it(store: Store):
    """What is missing is left out, and of each object no more than the last bytes are read when that is asked for."""
    store.write("a/long", b"0123456789")
    store.write("a/short", b"12")
    store.write("a/empty", b"")
    wanted = ["a/long", "a/short", "a/empty", "a/nope", "a/long/nope"]
    assert store.read_there(wanted) == {"a/long": b"0123456789", "a/short": b"12", "a/empty": b""}
    assert store.read_there(wanted, last=4) == {"a/long": b"6789", "a/short": b"12", "a/empty": b""}
    assert store.read_there([], last=4) == {}


def test_what_is_missing(store: Store):
    """A missing object is a FileNotFoundError, a missing folder is empty."""
    with pytest.raises(FileNotFoundError):
        store.read("nope")
    assert not store.exists("nope")
    assert store.names("nope") == []
    assert store.find("nope") == []


def test_a_folder_that_cannot_be_read_is_not_taken_for_empty(tmp_path: Path):
    """What is in there would be paid for again."""
    (tmp_path / "commits").symlink_to("commits")
    with pytest.raises(StoreError, match="symbolic links"):
        Store(str(tmp_path)).find("commits")


def test_links_in_circles(tmp_path: Path):
    """Two links of a folder to itself have more paths than can be listed; each file is found once, where it is."""
    folder, beside = tmp_path / "run" / "cwd", tmp_path / "beside"
    for each in (folder / "deep", beside):
        each.mkdir(parents=True)
        (each / "file").touch()
    for name in "abc":
        (folder / name).symlink_to(".")
        (folder / "deep" / name).symlink_to("..")
    (folder / "elsewhere").symlink_to(beside)
    (beside / "back").symlink_to(folder)
    assert Store(str(tmp_path / "run")).find() == ["cwd/deep/file", "cwd/elsewhere/file"]


def test_copies(store: Store):
    """A copy replaces what is there; what is missing cannot be copied."""
    store.write("a/b", b"1")
    store.write("c", b"old")
    store.copy("a/b", "c")
    store.copy("a/b", "new/folder/d")
    assert (store.read("c"), store.read("new/folder/d"), store.read("a/b")) == (b"1", b"1", b"1")
    with pytest.raises(FileNotFoundError):
        store.copy("gone", "c")


def test_create_is_won_once(store: Store):
    """Of two creations of the same object the first wins, and the loser is told."""
    assert store.create("commit.json", b"mine")
    assert not store.create("commit.json", b"yours")
    assert store.read("commit.json") == b"mine"


def test_create_is_won_once_by_many_at_a_time(tmp_path: Path):
    """However many create the same local object at the same moment, exactly one is told that it won."""
    store, won = Store(str(tmp_path)), list[str]()
    for round_ in range(20):
        start = threading.Barrier(8)

        def attempt(name: str, path: str = f"{round_}/commit.json", start: threading.Barrier = start) -> None:
            start.wait()
            if store.create(path, name.encode()):
                won.append(path)

        threads = [threading.Thread(target=attempt, args=(str(i),)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(won) == sorted(f"{round_}/commit.json" for round_ in range(20))


def test_a_put_file_is_copied(store: Store, tmp_path: Path):
    """A local file arrives whole and stays where it was."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * 100_000)
    store.put("report/results.parquet", source)
    assert store.read("report/results.parquet") == source.read_bytes()


def test_no_half_written_object_is_left(tmp_path: Path):
    """A write that cannot be finished is a StoreError naming the object, and leaves no file behind."""
    (tmp_path / "parts").write_bytes(b"a file where a folder should be")
    with pytest.raises(StoreError, match="parts/x"):
        Store(str(tmp_path)).write("parts/x", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_an_unknown_location_is_refused():
    """A URI that nothing can open is the caller's mistake and says what would work."""
    with pytest.raises(UsageError, match="s3://bucket"):
        Store("nosuch://x")


@pytest.mark.parametrize(("uri", "extra"), [("gs://b/x", "gcs"), ("az://b/x", "azure"), ("abfs://b/x", "azure")])
def test_what_to_install_for_other_clouds(uri: str, extra: str):
    """A store whose library is not there is refused with the command that brings it."""
    if find_spec({"gcs": "gcsfs", "azure": "adlfs"}[extra]):
        pytest.skip("it is installed")
    with pytest.raises(UsageError, match=re.escape(f"pip install 'trunchray[{extra}]'")):
        Store(uri)


def test_of_several_objects_one_is_missing(store: Store):
    """An object that should be there and is not is named."""
    store.write("a", b"1")
    with pytest.raises(StoreError, match="/b is there but cannot be read"):
        store.read_many(["a", "b"])

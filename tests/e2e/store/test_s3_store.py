"""Objects on a real S3 server, on good days and bad ones."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.config import conf

from support.s3 import READERS_KEY, READERS_SECRET, Bucket
from support.s3_faults import PASSING, Fault, Kind
from trunchray.adapters.store import Patience, Store
from trunchray.errors import StoreError, StoreUnusable, UsageError


@pytest.fixture
def store(s3: Bucket) -> Store:
    return Store(s3.uri)


@pytest.fixture
def impatient() -> Iterator[None]:
    """Answers are waited for a second, not half a minute."""
    conf["s3"] = {"config_kwargs": {"read_timeout": 1}}
    yield
    del conf["s3"]


def asked(s3: Bucket) -> list[str]:
    return [request.what for request in s3.proxy.log]


def test_what_is_written_is_read_back(store: Store):
    """Objects, folders and listings are as on a disk."""
    store.write("a/b.json", b"1")
    store.write("a/b.json", b"2")
    store.write("a/c/d.json", b"3")
    assert store.read("a/b.json") == b"2"
    assert store.names("a") == ["b.json", "c"]
    assert store.names() == ["a"]
    assert store.find("a") == store.find() == ["a/b.json", "a/c/d.json"]
    assert store.read_many(["a/b.json", "a/c/d.json"]) == {"a/b.json": b"2", "a/c/d.json": b"3"}
    store.write("[a-z]/*?.json", b"4")
    assert store.read_many(["[a-z]/*?.json"]) == {"[a-z]/*?.json": b"4"}
    assert store.exists("a/b.json")
    store.write("empty", b"")
    assert store.exists("empty")
    assert store.read("empty") == b""


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
    """A missing object is a FileNotFoundError, a missing folder is empty, and a folder is no object."""
    store.write("a/b", b"")
    for path in ("nope", "a"):
        with pytest.raises(FileNotFoundError):
            store.read(path)
        assert not store.exists(path)
    assert store.names("nope") == store.find("nope") == []
    with pytest.raises(StoreError, match="nope is there but cannot be read"):
        store.read_many(["a/b", "nope"])


def test_each_operation_is_one_request(s3: Bucket, store: Store):
    """Reading, writing, listing and asking cost one request each, and creating does once the store is known."""
    store.create("first", b"0")
    with s3.proxy.counting() as log:
        store.write("a", b"1")
        store.create("b", b"1")
        store.read("a")
        store.exists("c")
        store.names("nope")
        store.find("nope")
        with pytest.raises(FileNotFoundError):
            store.read("c")
    assert [request.what for request in log] == ["PUT", "PUT", "GET", "GET", "LIST", "LIST", "GET"]


def test_long_listings_are_whole(s3: Bucket):
    """More objects than a page of a listing holds are all found, even when a page has to be asked for again."""

    class Short(Store):
        page = 3

    store = Short(s3.uri)
    paths = [f"{folder}/{number}" for folder in "abcd" for number in range(2)]
    for path in paths:
        store.write(path, b"")
    with s3.proxy.faulty(Fault("cut", "LIST", spare=1)), s3.proxy.counting() as log:
        assert store.find() == paths
    assert len(log) == 4
    assert store.names() == ["a", "b", "c", "d"]


def test_a_put_file_is_copied(store: Store, tmp_path: Path):
    """A local file arrives whole."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * 100_000)
    store.put("report/results.parquet", source)
    assert store.read("report/results.parquet") == source.read_bytes()


def test_create_is_won_once_by_many_at_a_time(store: Store):
    """However many create the same object at the same moment, exactly one is told that it won, and its object stays."""
    won: list[bytes] = []
    start = threading.Barrier(4)

    def attempt(content: bytes) -> None:
        start.wait()
        if Store(store.uri).create("commit.json", content):
            won.append(content)

    threads = [threading.Thread(target=attempt, args=(uuid.uuid4().bytes,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [store.read("commit.json")]


@pytest.mark.parametrize("kind", PASSING)
def test_reading_gets_over_a_bad_moment(kind: Kind, s3: Bucket, store: Store):
    """Whatever happens to an answer on its way, what is read is what is stored, whole."""
    store.write("a/b", b"content")
    with s3.proxy.faulty(Fault(kind, "GET", times=2)):
        assert store.read("a/b") == b"content"
    with s3.proxy.faulty(Fault(kind, "GET", times=3)):
        assert store.read_many(["a/b"]) == {"a/b": b"content"}
    if kind != "torn download":
        with s3.proxy.faulty(Fault(kind, "LIST")):
            assert store.find() == ["a/b"]
    with s3.proxy.faulty(Fault(kind, "GET")):
        assert store.exists("a/b")


WRITING: list[Kind] = ["slow down", "internal error", "conflict", "cut", "cut after", "error after", "torn upload"]


@pytest.mark.parametrize("kind", WRITING)
def test_writing_gets_over_a_bad_moment(kind: Kind, s3: Bucket, store: Store):
    """Whatever happens to a write, in the end the object is there, whole, and its creator knows that it is its own."""
    with s3.proxy.faulty(Fault(kind, "PUT", times=2)):
        store.write("a", b"content")
    assert store.read("a") == b"content"
    for path in ("while-unknown", "when-known"):
        with s3.proxy.faulty(Fault(kind, "PUT", times=2)):
            assert store.create(path, b"ours")
        assert store.read(path) == b"ours"
    with s3.proxy.faulty(Fault(kind, "PUT")):
        assert not store.create("when-known", b"theirs")
    assert store.read("when-known") == b"ours"


def test_an_answer_that_never_comes(impatient: None, s3: Bucket, store: Store):
    """A write that was carried out and never answered is found to be our own."""
    store.create("first", b"0")
    with s3.proxy.faulty(Fault("hang after", "PUT")):
        assert store.create("commit.json", b"ours")
    with s3.proxy.faulty(Fault("hang after", "GET")):
        assert store.read("commit.json") == b"ours"


def test_of_two_creators_in_bad_weather_one_wins(s3: Bucket):
    """With answers lost on all sides each object still has one creator, who knows it."""
    won: list[tuple[int, bytes]] = []

    def attempt(content: bytes) -> None:
        mine = Store(s3.uri)
        won.extend((number, content) for number in range(6) if mine.create(f"{number}.json", content))

    with s3.proxy.shaky(seed=1, share=0.3):
        threads = [threading.Thread(target=attempt, args=(name,)) for name in (b"one", b"two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(won) == [(number, s3.read(f"{number}.json")) for number in range(6)]


@pytest.mark.parametrize("kind", ["ignored condition", "not implemented"])
def test_a_store_without_conditions_is_found_out(kind: Kind, s3: Bucket, store: Store):
    """A store that ignores or refuses If-None-Match is known after the first object, and looked at before each next."""
    with s3.proxy.faulty(Fault(kind, "PUT", times=99 if kind == "ignored condition" else 1)):
        assert store.create("a", b"ours")
        assert not store.conditional
        assert not store.create("a", b"theirs")
        assert store.read("a") == b"ours"
        assert store.create("b", b"ours")
    s3.forget()
    again = Store(s3.uri)
    assert again.create("c", b"ours")
    assert again.conditional


def test_nothing_is_retried_for_ever(s3: Bucket):
    """A store that fails on and on is given up in the end, with its own words; then it gets little time."""
    waits: list[float] = []
    store = Store(s3.uri, Patience(tries=8, sleep=waits.append))
    store.write("a", b"1")
    with (
        s3.proxy.faulty(Fault("slow down", times=99)),
        s3.proxy.counting() as log,
        pytest.raises(StoreError, match=r"/a: SlowDown: Please reduce your request rate\.$"),
    ):
        store.read("a")
    assert len(log) == 8
    assert len(waits) == 7
    assert all(0 <= wait <= 5 for wait in waits)
    assert store.read("a") == b"1"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("denied", r"it may not be {} with the permissions at hand \(AccessDenied: Access Denied\.\)"),
        ("expired token", "the credentials have expired; get new ones and give the same command again"),
        ("expired session", "the credentials have expired; get new ones and give the same command again"),
        ("wrong clock", "the clock of this machine is wrong, so the store does not trust its requests"),
    ],
)
def test_refusals_are_not_retried(kind: Kind, message: str, s3: Bucket, store: Store):
    """A refusal is final: one request, one line that says what to do; exit 2 while nothing has worked, 3 after that."""
    for expected in (StoreUnusable, StoreError):
        with s3.proxy.faulty(Fault(kind, times=9)), s3.proxy.counting() as log:
            with pytest.raises(expected, match=message.format("read")) as reading:
                store.read("a")
            with pytest.raises(expected, match=message.format("written")) as writing:
                store.write("a", b"1")
        assert type(reading.value) is type(writing.value) is expected
        assert len(log) == 2
        store.write("a", b"1")
        store.read("a")


def test_a_bucket_that_does_not_exist(s3: Bucket):
    """A bucket that is not there is named, and never taken for an empty folder."""
    nowhere = Store("s3://no-such-bucket/x")
    for action in (nowhere.reach, nowhere.names, nowhere.find, lambda: nowhere.read("a")):
        with pytest.raises(
            StoreUnusable, match=r"there is no bucket 'no-such-bucket' at http://127.0.0.1:.*; create it"
        ):
            action()
    with pytest.raises(UsageError, match="it names no bucket"):
        Store("s3://")


def test_credentials(s3: Bucket, monkeypatch: pytest.MonkeyPatch):
    """Missing, wrong and too weak credentials are told apart, and never shown."""
    Store(s3.uri).write("a", b"1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    s3.log_in_again()
    with pytest.raises(StoreUnusable, match="the credentials are not accepted; check AWS_ACCESS_KEY_ID") as refused:
        Store(s3.uri).reach()
    assert "wrong-secret" not in str(refused.value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", READERS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", READERS_SECRET)
    s3.log_in_again()
    assert Store(s3.uri).read("a") == b"1"
    with pytest.raises(StoreUnusable, match="it may not be written with the permissions at hand"):
        Store(s3.uri).write("a", b"2")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3.log_in_again()
    with pytest.raises(StoreUnusable, match="there are no credentials; set AWS_ACCESS_KEY_ID and"):
        Store(s3.uri).reach()
    monkeypatch.undo()
    s3.log_in_again()


def test_a_wrong_endpoint(s3: Bucket, monkeypatch: pytest.MonkeyPatch):
    """Nobody there, or somebody who is no object store: said so within seconds, with the address."""
    strange = r"http://127.0.0.1:\d+ does not answer like an object store"
    with s3.proxy.faulty(Fault("web page", times=9)), pytest.raises(StoreUnusable, match=strange):
        Store(s3.uri).reach()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StoreUnusable, match=r"nothing answers at http://127\.0\.0\.1:1; is it up, and is AWS_ENDPOINT"):
        Store(s3.uri, Patience(short=0.2)).reach()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL has to begin with http:// or https://"):
        Store(s3.uri)

"""Folders that several fill at the same time: one of them counts, whole, whoever dies on the way."""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path

import pytest

from trunchray.adapters.store import Store
from trunchray.adapters.tries import Tries
from trunchray.errors import StoreError


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(str(tmp_path / "folder") if request.param == "local" else f"memory://{uuid.uuid4().hex}/folder")


def tried(store: Store, who: str, *names: str) -> Store:
    """A try whose files all say whose they are."""
    made = Tries(store, "last").begin()
    for name in names or ("a", "cwd/b", "cwd/deep/c"):
        made.write(name, who.encode())
    return made


def content(store: Store) -> dict[str, str]:
    return {path: store.read(path).decode() for path in store.find()}


def of(who: str) -> dict[str, str]:
    return {"a": who, "cwd/b": who, "cwd/deep/c": who, "last": who}


def test_what_is_tried_is_not_there_before_it_is_complete(store: Store):
    """Then all of it is, and nothing else."""
    made = tried(store, "one")
    assert not store.exists("a")
    assert Tries(store, "last").settled() is None
    assert Tries(store, "last").complete(made, "one")
    assert content(store) == of("one")
    assert Tries(store, "last").settled() == b"one"


def test_who_is_late_changes_nothing(store: Store):
    """Neither by trying nor by coming to an end, whether it began before the other one was complete or afterwards."""
    early = tried(store, "early")
    assert Tries(store, "last").complete(tried(store, "one"), "one")
    late = tried(store, "late", "a", "cwd/b", "cwd/other")
    assert content(store) == of("one") | dict.fromkeys(store.find(".tries"), "late")
    for each in (early, late):
        assert not Tries(store, "last").complete(each, "late")
        assert content(store) == of("one")


def test_what_a_dead_process_has_left_to_do_is_done(store: Store):
    """It came to its end, and had brought some of its files to their places: they all count, and nobody else's."""
    dead = tried(store, "dead")
    record = {"token": dead.uri.rpartition("/")[2], "last": "dead"}
    store.write(".chosen.json", json.dumps(record).encode())
    store.write("a", b"dead")
    assert not Tries(store, "last").complete(tried(store, "other"), "other")
    assert content(store) == of("dead")


def test_a_record_of_somebody_late_counts_for_nothing(store: Store):
    """Once a folder is complete its record is removed, so a late one can be created."""
    assert Tries(store, "last").complete(tried(store, "one"), "one")
    late = tried(store, "late")
    store.write(".chosen.json", json.dumps({"token": late.uri.rpartition("/")[2], "last": "late"}).encode())
    assert Tries(store, "last").settled() == b"one"
    assert {path: said for path, said in content(store).items() if not path.startswith(".")} == of("one")


def test_who_dies_before_the_end_has_left_nothing(store: Store):
    """Its files are of no try that counts, and go when another one does."""
    tried(store, "dead")
    assert Tries(store, "last").settled() is None
    assert Tries(store, "last").complete(tried(store, "one", "a"), "one")
    assert content(store) == {"a": "one", "last": "one"}


def test_a_damaged_record_is_said(store: Store):
    """Nobody knows what counts then."""
    store.write(".chosen.json", b'{"token"')
    with pytest.raises(StoreError, match=r"chosen.json is damaged; move its folder elsewhere"):
        Tries(store, "last").settled()


def test_many_at_a_time(tmp_path: Path):
    """However many come to their end at the same moment, the folder is that of one, and at most that one is told so."""
    for round_ in range(5):
        store, told = Store(str(tmp_path / str(round_))), list[str]()
        tries = {who: tried(store, who) for who in "abcdef"}
        begin = threading.Barrier(len(tries))

        def end(who: str, made: Store, store: Store = store, told: list[str] = told, begin: threading.Barrier = begin):
            begin.wait()
            if Tries(store, "last").complete(made, who):
                told.append(who)

        threads = [threading.Thread(target=end, args=each) for each in tries.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = store.read("last").decode()
        assert content(store) == of(won)
        assert told in ([], [won])

"""Several files at a time: all of them, or an error."""

from __future__ import annotations

import threading

import pytest

from trunchray.adapters.transfers import AT_A_TIME, each


def test_each_is_done_once():
    """However many there are, none at all included."""
    for count in (0, 1, AT_A_TIME, 100):
        done: list[str] = []
        each(done.append, map(str, range(count)))
        assert sorted(done, key=int) == [*map(str, range(count))]


def test_several_at_a_time():
    """As many as there may be wait for each other here."""
    together = threading.Barrier(AT_A_TIME)
    each(lambda _: together.wait(), map(str, range(2 * AT_A_TIME)))
    more = threading.Barrier(32)
    each(lambda _: more.wait(), map(str, range(64)), at_a_time=32)


def test_an_error_is_raised_and_ends_it():
    """An IndexError as well as any other; what has not begun then never does."""
    for error in (IndexError("a"), ValueError("b"), SystemExit(3)):
        done: list[str] = []

        def fail(path: str, done: list[str] = done, error: BaseException = error) -> None:
            done.append(path)
            raise error

        with pytest.raises(type(error)):
            each(fail, map(str, range(1000)))
        assert len(done) <= AT_A_TIME


def test_threads_do_not_keep_python_from_ending():
    """A store may hang for ever."""
    daemons: list[bool] = []
    each(lambda _: daemons.append(threading.current_thread().daemon), "abc")
    assert daemons == [True] * 3

"""Several files on their way at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Semaphore

from trunchray.adapters.calling import hand_out

AT_A_TIME = 8


def each(action: Callable[[str], object], paths: Iterable[str], *, at_a_time: int = AT_A_TIME) -> None:
    """Do something with each of these paths, several at a time; nothing more is begun after one has failed.

    In daemon threads: those of an executor are joined when Python ends, and a store that hangs would keep it from that.

    Raises:
        Exception: whatever the first that failed has raised.
    """
    left, errors, ended = deque(paths), list[BaseException](), Semaphore(0)
    threads = min(at_a_time, len(left))

    def work() -> None:
        try:
            while not errors and (path := _next(left)) is not None:
                action(path)
        except BaseException as e:  # raised below, where somebody waits for it
            errors.append(e)
        finally:
            ended.release()

    for _ in range(threads):
        hand_out(work)
    for _ in range(threads):
        ended.acquire()
    if errors:
        raise errors[0]


def _next(left: deque[str]) -> str | None:
    try:
        return left.popleft()
    except IndexError:
        return None

"""The keys of one model, which take turns."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

_log = logging.getLogger(__name__)


class Key(NamedTuple):
    """A key and the environment variable it came from; never shown, never recorded."""

    name: str
    text: str


class Keys:
    """Which key the next request is sent with. One that the provider refuses is left out while others work."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._all = tuple(keys)
        self._working = list(keys)
        self._turn = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """All keys, those that were refused too: what must not be recorded."""
        return tuple(key.text for key in self._all)

    def next(self) -> Key | None:
        """The key whose turn it is; None when there are none."""
        if not self._working:
            return None
        self._turn += 1
        return self._working[self._turn % len(self._working)]

    def refused(self, key: Key | None, reason: str) -> bool:
        """Leave out a key; whether another one can be tried instead. The last one stays."""
        if key is None or self._working == [key]:
            return False
        if key in self._working:  # else another request has found it out before
            self._working.remove(key)
            _log.warning("the key in %s is left out from now on: %s", key.name, reason)
        return True


def hint(key: Key | None) -> str:
    """What a message about a refused key adds: where it came from."""
    return f" (the key came from {key.name})" if key else " (no key was sent)"

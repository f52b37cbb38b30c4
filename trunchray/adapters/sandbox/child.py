"""A sandboxed process as its owner sees it."""

from __future__ import annotations

from typing import Protocol


class Child(Protocol):
    """A process in a group of its own."""

    @property
    def pid(self) -> int:
        """Also the id of its group."""
        ...

    def kill(self) -> None:
        """End its whole group; may be called again."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or minus the number of the signal that ended it. Blocks; returns once.

        Raises:
            TimeoutError: it has not ended within `timeout` seconds; it may be killed and waited for again.
        """
        ...

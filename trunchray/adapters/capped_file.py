"""A file of bounded size, whatever is written to it."""

from __future__ import annotations

from typing import BinaryIO


class CappedFile:
    """Keeps at most `most` bytes: the beginning, and the last `tail`, which are held in memory.

    Where something between them is missing, a line more says how much. The file itself stays open.
    """

    def __init__(self, file: BinaryIO, most: int, tail: int) -> None:
        self._file = file
        self._room = most - tail
        self._most_tail = tail
        self._tail = bytearray()
        self._dropped = 0
        self.closed = False

    @property
    def truncated(self) -> bool:
        """Whether something is missing."""
        return self._dropped > 0

    def write(self, chunk: bytes) -> None:
        """The next bytes."""
        head = chunk[: self._room]
        self._room -= len(head)
        self._file.write(head)
        self._tail += chunk[len(head) :]
        over = len(self._tail) - self._most_tail
        if over > 0:
            del self._tail[:over]
            self._dropped += over

    def close(self, last: bytes = b"") -> None:
        """Write the end, and `last` after it; may be called again."""
        if self.closed:
            return
        self.closed = True
        if self._dropped:
            self._file.write(f"\n[… {self._dropped} bytes are left out here …]\n".encode())
        self._file.write(bytes(self._tail) + last)
        self._file.flush()

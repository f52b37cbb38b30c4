"""What a sandboxed process may do, as far as the operating system can see to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Walls:
    """Bounds of one process. Whatever is not named here is refused, as far as the kernel can refuse it.

    Paths are absolute; a folder stands for everything below it. Sizes are in bytes.
    """

    execute: tuple[str, ...]
    """Programs and the loader they need; also readable."""
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    """Folders in which files may be made, changed and removed; also readable."""
    data_bytes: int | None = None
    """Anonymous memory: heap, array buffers, WebAssembly."""
    resident_bytes: int | None = None
    """Physical memory: watched, about four times a second, where the kernel does not count `data_bytes`."""
    cpu_seconds: int | None = None
    """Over the process's life, all threads together."""
    file_bytes: int = 0
    """The size of any file that it writes."""
    open_files: int = 64

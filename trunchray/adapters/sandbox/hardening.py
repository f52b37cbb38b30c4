"""Locking a process in, between fork and exec: limits, capabilities, Landlock, seccomp. The standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from trunchray.adapters.sandbox.landlock import restrict_paths
from trunchray.adapters.sandbox.seccomp import install_filter
from trunchray.adapters.sandbox.walls import Walls

_SET_PDEATHSIG, _SET_NO_NEW_PRIVS, _DROP_FROM_BOUNDING_SET, _DROP_AMBIENT = 1, 38, 24, 47
_CAP_READ_ANYTHING = 2
"""CAP_DAC_READ_SEARCH: root inside a container often reads files of others through it. Landlock confines it."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Powers:
    """What this kernel enforces, found out by trying."""

    landlock: bool
    seccomp: bool
    memory: bool
    """Whether it counts anonymous memory."""

    @property
    def level(self) -> str:
        """One of "landlock+seccomp", "seccomp", "landlock" and "none"."""
        names = [name for name in ("landlock", "seccomp") if getattr(self, name)]
        return "+".join(names) or "none"


NO_POWERS = Powers(landlock=False, seccomp=False, memory=False)


def lock_in(walls: Walls, powers: Powers) -> None:
    """Put up every wall of this kernel around the calling process, which must have one thread and is about to exec.

    Raises:
        OSError: one of them could not be put up.
    """
    _limit(walls)
    _drop_capabilities(keep=_CAP_READ_ANYTHING if powers.landlock else None)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)  # after capabilities, whose change clears it
    with contextlib.suppress(OSError):  # the first to go when the machine has no memory
        _write("/proc/self/oom_score_adj", b"1000")
    if powers.landlock:
        restrict_paths(walls)
    if powers.seccomp:
        install_filter()


def probe() -> Powers:
    """Try each wall on a child of its own."""
    return Powers(landlock=_holds(_try_landlock), seccomp=_holds(_try_seccomp), memory=_holds(_try_memory))


def _holds(attempt: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        held = False
        with contextlib.suppress(BaseException):
            held = attempt()
        os._exit(0 if held else 1)
    return os.waitpid(pid, 0)[1] == 0


def _try_landlock() -> bool:
    _prctl(_SET_NO_NEW_PRIVS, 1)
    restrict_paths(Walls(execute=()))
    return _refused(lambda: os.close(os.open("/", os.O_RDONLY)))


def _try_seccomp() -> bool:
    _prctl(_SET_NO_NEW_PRIVS, 1)
    install_filter()
    return _refused(lambda: os.kill(os.getpid(), 0))


def _try_memory() -> bool:
    _limit(replace(Walls(execute=()), data_bytes=256 << 20))
    return _refused(lambda: mmap.mmap(-1, 512 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close())


def _refused(action: Callable[[], None]) -> bool:
    try:
        action()
    except OSError:
        return True
    return False


def _limit(walls: Walls) -> None:
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: walls.cpu_seconds,
        resource.RLIMIT_DATA: walls.data_bytes,
        resource.RLIMIT_FSIZE: walls.file_bytes,
        resource.RLIMIT_NOFILE: walls.open_files,
    }
    for kind, wanted in limits.items():
        if wanted is not None:
            _, most = resource.getrlimit(kind)
            value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.setrlimit(kind, (value, value))


def _drop_capabilities(*, keep: int | None) -> None:
    """Root without privileges, but for one; who has none loses nothing."""
    if os.geteuid() != 0:
        return
    for capability in range(64):
        if capability != keep:
            _libc.prctl(_DROP_FROM_BOUNDING_SET, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3)
    _libc.prctl(_DROP_AMBIENT, ctypes.c_ulong(4), *[ctypes.c_ulong(0)] * 3)
    kept = 0 if keep is None else 1 << keep
    header = struct.pack("=Ii", 0x20080522, 0)
    # Effective and permitted, not inheritable; then the same for capabilities from 32.
    sets = struct.pack("=6I", *_permitted(kept), 0, 0, 0, 0)
    if _libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(sets)):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def _permitted(wanted: int) -> tuple[int, int]:
    """What of `wanted` the process has: a container may have taken it away."""
    header, sets = struct.pack("=Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    if _libc.capget(ctypes.c_char_p(header), sets):
        return 0, 0
    _, permitted, *_ = struct.unpack("=6I", sets.raw)
    return wanted & permitted, wanted & permitted


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def _write(path: str, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, content)
    finally:
        os.close(file)

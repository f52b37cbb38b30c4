"""Landlock: Linux keeps an unprivileged process, for the rest of its life, from all files but those named."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from trunchray.adapters.sandbox.walls import Walls

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 7, 1 << 8, 1 << 14
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_abi() -> int:
    """The version of Landlock that this kernel has, from 1; 0 when it has none or it is off."""
    try:
        return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return 0


def restrict_paths(walls: Walls) -> None:
    """Allow the paths of `walls` only; where the kernel can, also no TCP, no abstract sockets, no signals to others.

    The process must have given up new privileges. What a path leads to counts, not its name; a missing one is left out.

    Raises:
        OSError: the kernel refused; the process may be restricted in part.
    """
    abi = landlock_abi()
    handled = _handled(abi)
    ruleset = _call(_CREATE, *_attributes(abi, handled), ctypes.c_uint(0))
    try:
        _allow(ruleset, walls.execute, (_EXECUTE | _READ_FILE) & handled)
        _allow(ruleset, walls.read, _READ & handled)
        _allow(ruleset, walls.write, _WRITE & handled)
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _handled(abi: int) -> int:
    """Every right on files that this version knows."""
    bits = 13 + (abi >= 2) + (abi >= 3) + (abi >= 5)
    return (1 << bits) - 1


def _attributes(abi: int, handled: int) -> tuple[ctypes.c_char_p, ctypes.c_size_t]:
    """`struct landlock_ruleset_attr`: files, from version 4 TCP (bind, connect), from 6 scopes (sockets, signals)."""
    whole = struct.pack("=QQQ", handled, 0b11, 0b11)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    return ctypes.c_char_p(whole), ctypes.c_size_t(size)


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            folder = stat.S_ISDIR(os.fstat(beneath).st_mode)
            rule = struct.pack("=Qi", rights if folder else rights & _ON_FILES, beneath)
            _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.c_char_p(rule), ctypes.c_uint(0))
        finally:
            os.close(beneath)


def _call(number: int, *arguments: object) -> int:
    result = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result

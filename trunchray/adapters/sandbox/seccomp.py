"""A seccomp filter: system calls that computing never needs are refused, for the rest of a process's life.

It closes what Landlock leaves open: sockets of every kind, new processes, signals and other reaches into processes of
the same user, changes of files' modes and owners, and corners of the kernel that attackers like.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_CALLS = """
network:     socket 41 198, connect 42 203, bind 49 200, listen 50 201, accept 43 202, accept4 288 242
processes:   fork 57 -, vfork 58 -, execveat 322 281, ptrace 101 117, process_vm_readv 310 270,
             process_vm_writev 311 271, process_madvise 440 440, process_mrelease 448 448, kcmp 312 272
signals:     kill 62 129, tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, pidfd_open 434 434,
             pidfd_getfd 438 438, pidfd_send_signal 424 424
scheduling:  setrlimit 160 164, setpriority 141 140, ioprio_set 251 30, sched_setparam 142 118,
             sched_setscheduler 144 119, sched_setattr 314 274, sched_setaffinity 203 122, migrate_pages 256 238,
             move_pages 279 239
attributes:  truncate 76 45, chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, lchown 94 -,
             fchown 93 55, fchownat 260 54, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88,
             setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463, removexattr 197 14,
             lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466, file_setattr 469 469
watching:    inotify_init 253 -, inotify_init1 294 26, fanotify_init 300 262, name_to_handle_at 303 264,
             open_by_handle_at 304 265, lookup_dcookie 212 18
memory:      memfd_create 319 279, memfd_secret 447 447, shmget 29 194, shmat 30 196, shmctl 31 195, semget 64 190,
             semop 65 193, semctl 66 191, semtimedop 220 192, msgget 68 186, msgsnd 69 189, msgrcv 70 188,
             msgctl 71 187, mq_open 240 180, mq_unlink 241 181, userfaultfd 323 282
mounts:      mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428, move_mount 429 429,
             fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442,
             open_tree_attr 467 467, swapon 167 224, swapoff 168 225, quotactl 179 60, quotactl_fd 443 443,
             acct 163 89, sync 162 81, syncfs 306 267, unshare 272 97, setns 308 268
kernel:      keyctl 250 219, add_key 248 217, request_key 249 218, bpf 321 280, perf_event_open 298 241,
             io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, init_module 175 105,
             finit_module 313 273, delete_module 176 106, kexec_load 246 104, kexec_file_load 320 294, reboot 169 142,
             syslog 103 116, personality 135 92, modify_ldt 154 -, iopl 172 -, ioperm 173 -, vhangup 153 58,
             settimeofday 164 170, clock_settime 227 112, clock_adjtime 305 266, adjtimex 159 171,
             sethostname 170 161, setdomainname 171 162
"""
"""Refused with EPERM: name, number on x86_64, number on aarch64."""

_FIRST_UNKNOWN = 470
"""Calls that kernels gained later, and those of the x32 ABI, do not exist here."""

_CLONE_THREAD = 0x10000
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Machine:
    """An architecture: `audit` as the kernel names it, `column` of the table, numbers of the calls judged by value."""

    audit: int
    column: int
    clone: int
    clone3: int
    tgkill: int
    prlimit: int
    prctl: int


MACHINES = {
    "x86_64": Machine(0xC000003E, 0, clone=56, clone3=435, tgkill=234, prlimit=302, prctl=157),
    "aarch64": Machine(0xC00000B7, 1, clone=220, clone3=435, tgkill=131, prlimit=261, prctl=167),
}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets into `struct seccomp_data`
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE, _UNKNOWN = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS

Instruction = tuple[int, int, int, int]
"""Code, instructions to skip when true, when false, and a constant."""

_libc = ctypes.CDLL(None, use_errno=True)


def refused_calls(column: int) -> dict[str, int]:
    """The calls that are refused whatever their arguments are."""
    found = re.findall(r"(\w+) (\d+|-) (\d+|-)", _CALLS)
    return {name: int(numbers[column]) for name, *numbers in found if numbers[column] != "-"}


def filter_program(machine: Machine, pid: int) -> list[Instruction]:
    """The filter for the process `pid`: threads and signals to itself are all it has of processes."""
    return [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        *_if(_AT_LEAST, _FIRST_UNKNOWN, [(_RETURN, 0, 0, _UNKNOWN)]),
        # The flags of clone3 cannot be seen from here; without it, the C library uses clone.
        *_if(_EQUAL, machine.clone3, [(_RETURN, 0, 0, _UNKNOWN)]),
        *_if(_EQUAL, machine.clone, [_load(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), *_verdicts()]),
        *_if(_EQUAL, machine.tgkill, [_load(0), (_EQUAL, 1, 0, pid), *_verdicts()]),
        *_if(_EQUAL, machine.prctl, [_load(0), (_EQUAL, 0, 1, _PR_SET_PDEATHSIG), *_verdicts()]),
        *_if(_EQUAL, machine.prlimit, _unless_given(2)),
        *(step for number in _numbers(machine) for step in _if(_EQUAL, number, [(_RETURN, 0, 0, _REFUSE)])),
        (_RETURN, 0, 0, _ALLOW),
    ]


def install_filter() -> None:
    """Filter the calls of this process, all its threads, and what it executes.

    The process must have given up new privileges.

    Raises:
        OSError: the kernel refused, or the filter does not know this architecture.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"seccomp: no table for {platform.machine()}")
    steps = filter_program(machine, os.getpid())
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("=HxxxxxxQ", len(steps), ctypes.addressof(buffer))
    if _libc.prctl(22, ctypes.c_ulong(2), ctypes.c_char_p(program), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _numbers(machine: Machine) -> Iterator[int]:
    yield from refused_calls(machine.column).values()


def _if(test: int, constant: int, then: list[Instruction]) -> list[Instruction]:
    """`then` must end by returning."""
    return [(test, 0, len(then), constant), *then]


def _load(argument: int, half: int = 0) -> Instruction:
    """One half of a 64-bit argument, the low one first: both architectures are little-endian."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4 * half)


def _verdicts() -> list[Instruction]:
    """Where a test that skips one instruction chooses between refusing and allowing."""
    return [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]


def _unless_given(argument: int) -> list[Instruction]:
    """Allowed when the pointer is null: limits may be read, not set."""
    return [_load(argument), (_EQUAL, 0, 2, 0), _load(argument, 1), (_EQUAL, 1, 0, 0), *_verdicts()]

"""The seccomp filter, run step by step for both architectures: which system calls it lets through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.seccomp import MACHINES, Machine, filter_program, refused_calls

PID = 4321
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def verdict(machine: Machine, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the kernel would be told of a call: the filter's instructions as the kernel executes them."""
    words = [number, machine.audit if audit is None else audit, 0, 0]
    for argument in (*arguments, *[0] * (6 - len(arguments))):
        words += [argument & 0xFFFFFFFF, argument >> 32]
    program = filter_program(machine, PID)
    at = value = 0
    while True:
        code, when_true, when_false, constant = program[at]
        at += 1
        match code:
            case 0x20:
                value = words[constant // 4]
            case 0x06:
                return constant
            case _:
                true = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
                at += when_true if true else when_false


@pytest.fixture(params=MACHINES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def machine(name: str) -> Machine:
    return MACHINES[name]


def test_listed_calls_are_refused_and_others_are_not(machine: Machine) -> None:
    """Every call of the table gives EPERM; reading, writing, mapping memory and executing stay."""
    refused = refused_calls(machine.column)
    assert {verdict(machine, number) for number in refused.values()} == {EPERM}
    judged = {machine.clone, machine.clone3, machine.tgkill, machine.prctl, machine.prlimit}
    others = set(range(470)) - set(refused.values()) - judged
    assert {verdict(machine, number) for number in others} == {ALLOW}


def test_unknown_calls_do_not_exist(machine: Machine) -> None:
    """Calls of later kernels and of the x32 ABI answer that there is no such call, as does clone3."""
    for number in (470, 1000, 0x40000000 | 41, 0xFFFFFFFF, machine.clone3):
        assert verdict(machine, number) == ENOSYS


def test_another_architecture_is_death(machine: Machine) -> None:
    """The same number means another call there."""
    assert verdict(machine, 0, audit=0x40000003) == KILL


def test_threads_may_be_made_and_processes_not(machine: Machine) -> None:
    """A clone must share everything that threads share."""
    assert verdict(machine, machine.clone, 0x3D0F00) == ALLOW  # as the C library makes a thread
    for flags in (17, 0x4111, 0x4000 | 0x100 | 17):  # fork, vfork, posix_spawn
        assert verdict(machine, machine.clone, flags) == EPERM


def test_signals_reach_the_process_itself_only(machine: Machine) -> None:
    """`abort` needs a signal to one's own threads."""
    assert verdict(machine, machine.tgkill, PID, PID + 1, 6) == ALLOW
    assert verdict(machine, machine.tgkill, PID + 1, PID + 1, 9) == EPERM


def test_the_signal_of_the_parents_death_stays(machine: Machine) -> None:
    """Code in the sandbox cannot arrange to outlive whoever started it."""
    assert verdict(machine, machine.prctl, 1, 0) == EPERM
    assert verdict(machine, machine.prctl, 15, 0) == ALLOW


def test_limits_may_be_read_and_not_set(machine: Machine) -> None:
    """Neither its own, nor those of others; a pointer counts with both its halves."""
    assert verdict(machine, machine.prlimit, 0, 7, 0, 0x7FFF_0000_1000) == ALLOW
    for given in (0x1000, 0x7FFF_0000_0000):
        assert verdict(machine, machine.prlimit, 0, 7, given, 0) == EPERM


def test_numbers_are_those_of_the_kernel(name: str, machine: Machine) -> None:
    """Each number that the kernel's headers on this machine know is the one in the table."""
    header = HEADERS[name]
    if not header.is_file():
        pytest.skip("the kernel's headers are not installed")
    known = {call: int(number) for call, number in re.findall(r"__NR_(\w+)\s+(\d+)", header.read_text())}
    ours = refused_calls(machine.column) | {
        call: getattr(machine, call.removesuffix("64")) for call in ("clone", "clone3", "tgkill", "prlimit64", "prctl")
    }
    assert {call: number for call, number in ours.items() if known.get(call, number) != number} == {}
    assert len(ours.keys() & known.keys()) > 90

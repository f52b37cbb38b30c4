"""Which walls a machine has, in words."""

from __future__ import annotations

import pytest

from trunchray.adapters.sandbox.hardening import NO_POWERS, Powers
from trunchray.adapters.sandbox.launcher import check_powers
from trunchray.adapters.sandbox.process import Bounds
from trunchray.errors import UsageError


def powers(*, landlock: bool, seccomp: bool) -> Powers:
    return Powers(landlock=landlock, seccomp=seccomp, memory=True)


def test_the_level_names_the_walls() -> None:
    """What rows record."""
    assert powers(landlock=True, seccomp=True).level == "landlock+seccomp"
    assert powers(landlock=False, seccomp=True).level == "seccomp"
    assert NO_POWERS.level == "none"


@pytest.mark.parametrize(
    ("have", "lacking"),
    [
        (powers(landlock=False, seccomp=True), "lacks Landlock"),
        (powers(landlock=True, seccomp=False), "lacks seccomp"),
        (NO_POWERS, r"lacks Landlock \(Linux 5\.13 or later, and not switched off\) and seccomp"),
    ],
)
def test_a_missing_wall_is_named(have: Powers, lacking: str) -> None:
    """The message says what the kernel lacks and what can be done."""
    with pytest.raises(UsageError, match=lacking) as caught:
        check_powers(have)
    assert "sandbox.require: 'landlock' cannot be met on " in str(caught.value)


def test_both_walls_are_enough() -> None:
    """Nothing is said."""
    check_powers(powers(landlock=True, seccomp=True))


def test_bounds_become_limits_of_memory() -> None:
    """What is counted holds V8's reservation of address space; what is resident does not."""
    bounds = Bounds(heap_mb=100, cpu_seconds=1, max_reply=1, extra_mb=50)
    assert (bounds.data_bytes >> 20, bounds.resident_bytes >> 20) == (710, 150)

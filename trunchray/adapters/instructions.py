"""Whether somebody has left instructions where the coding tools of a clean room would find them."""

from __future__ import annotations

import os
from pathlib import Path

from trunchray.core.disarmed import INSTRUCTIONS, instructs
from trunchray.errors import UsageError


def instructions_above(folder: Path) -> Path | None:
    """The first file or folder of such a name in one of the folders that `folder` is in; None where there is none.

    Tools read those of all folders above their own, whoever has put them there.
    """
    return next((found for above in folder.parents for found in _instructions(above)), None)


def refuse_instructions(folder: Path) -> None:
    """Make sure that there are none.

    Raises:
        UsageError: there are.
    """
    if planted := instructions_above(folder):
        raise UsageError(refusal(planted))


def refusal(planted: Path) -> str:
    """What is said of it."""
    return (
        f"coding tools would read {planted} as instructions, as it lies above their clean rooms; "
        "remove it, or set TMPDIR to a folder that has nothing like it above"
    )


def _instructions(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if instructs(path.name))
    except OSError:  # what it holds cannot be listed, but may be read by its name
        return [folder / name for name in INSTRUCTIONS if os.path.lexists(folder / name)]

"""Words of a command that are no text: paths may have any bytes, and what a run stores is UTF-8."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunchray.cli.driving import command_given
from trunchray.cli.options import writable
from trunchray.errors import UsageError

ODD = os.fsdecode(b"p\xff")


def test_a_command_is_stored_whatever_its_words_are():
    """As text, so that a run is not lost for a path that it was given."""
    assert command_given(["trunchray", "run", f"{ODD}/a b"]) == "trunchray run 'p\ufffd/a b'"


def test_a_run_is_not_kept_where_its_place_cannot_be_stored(tmp_path: Path):
    """It is refused before anything begins."""
    with pytest.raises(UsageError, match="is not UTF-8, which runs cannot store; rename it"):
        writable(str(tmp_path / ODD))

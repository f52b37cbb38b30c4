"""What folders of skill runs are called."""

from __future__ import annotations

import re

MOST = 200
"""Characters of a folder's name: file systems take 255 bytes, and a run folder has a date before it."""


def safe_name(text: str) -> str:
    """The text as the name of one folder: never a path that leads elsewhere, and never empty.

    Different texts can give the same name, as "a/b" and "a_b" do.
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip(".") or "unnamed"


def run_label(skill: str, what: str) -> str:
    """The label of a run of a skill: `brief-writer-quality`, `brief-writer-triggers`."""
    return safe_name(f"{skill[: MOST // 2]}-{what}")

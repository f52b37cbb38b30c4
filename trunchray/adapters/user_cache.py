"""Where this user keeps what was fetched once."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """`$TRUNCHRAY_CACHE`, or the user's cache directory of this system."""
    return Path(os.environ.get("TRUNCHRAY_CACHE") or platformdirs.user_cache_dir("trunchray"))

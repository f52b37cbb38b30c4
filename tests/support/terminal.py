"""A terminal that remembers."""

from __future__ import annotations

import io
import re


class Terminal(io.StringIO):
    """As wide as the environment variable COLUMNS says."""

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        """All that was shown, without colours and movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()).replace("\r", "")

"""What parametrised tests are called: the same in every process, or they cannot be shared out."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """Its repr, without where it is in memory."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))

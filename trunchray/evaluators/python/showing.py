"""How what other people's code returned or said is shown in an explanation."""

from __future__ import annotations

import re
from reprlib import Repr

from trunchray.core.excerpt import excerpt

LONGEST = 2_000
"""Characters of an explanation."""

_short = Repr()
_short.maxstring = _short.maxother = 80
_address = re.compile(r" at 0x[0-9A-Fa-f]+")


def shown(value: object) -> str:
    """What Python prints of a value, some of it: the same in every process, and never an error."""
    return clean(_address.sub("", _short.repr(value)))


def clean(text: str) -> str:
    """As it can be stored: not too long, and lone surrogates escaped."""
    return excerpt(text, LONGEST).encode("utf-8", "backslashreplace").decode()

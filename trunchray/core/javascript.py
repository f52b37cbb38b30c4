"""JavaScript's string rules, in Python.

Authors and their published results come from JavaScript, so strings are compared as JavaScript would. Python differs:
`str.strip` removes U+001C–1F and U+0085, and keeps U+FEFF. Lower case and NFKC follow Unicode in both; they can differ
for characters younger than the older of the two Unicode tables.
"""

from __future__ import annotations

import re
import unicodedata

WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What `String.prototype.trim` removes and `\\s` matches (ECMA-262, WhiteSpace and LineTerminator)."""

_runs = re.compile(f"[{re.escape(WHITE_SPACE)}]+")
_disputed = re.compile("[\x1c-\x1f\x85\ufeff]")
"""Where `str.split` and JavaScript disagree about white space."""


def trim(text: str) -> str:
    """`text.trim()`."""
    return text.strip(WHITE_SPACE)


def normalise(text: str) -> str:
    """`answer_bank: nfkc-lower-ws/1`: NFKC, lower case, runs of white space to one blank, trim."""
    return collapse(unicodedata.normalize("NFKC", text).lower())


def collapse(text: str) -> str:
    """Runs of white space to one blank each, and none at the ends."""
    if _disputed.search(text):
        return trim(_runs.sub(" ", text))
    return " ".join(text.split())  # the same for all other text, several times as fast

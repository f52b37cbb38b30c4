"""JavaScript's string rules, case by case; the engine itself is asked in `property/test_text_javascript.py`."""

from __future__ import annotations

import pytest

from trunchray.core.javascript import WHITE_SPACE, normalise, trim


def test_trim_removes_every_white_space_character() -> None:
    """All 25 characters of ECMA-262 are removed, at both ends."""
    assert len(set(WHITE_SPACE)) == 25
    assert trim(WHITE_SPACE + "a b" + WHITE_SPACE) == "a b"


@pytest.mark.parametrize("kept", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u180e", "\u200b", "\u2060"])
def test_trim_keeps_what_only_python_calls_white_space(kept: str) -> None:
    """Characters that JavaScript does not trim stay, and a normalised text keeps them apart too."""
    assert trim(f" {kept} ") == kept
    assert normalise(f" a{kept}b ") == f"a{kept}b"


def test_normalise_collapses_white_space_beside_disputed_characters() -> None:
    """A byte order mark is white space, also next to characters that only Python would collapse."""
    assert normalise("\ufeff A\ufeff \u3000B\x85 \n C\t") == "a b\x85 c"


@pytest.mark.parametrize(("text", "normal"), [("ﬁNE", "fine"), ("Ⅷ", "viii"), ("①½", "11⁄2"), ("e\u0301", "é")])
def test_normalise_is_nfkc_and_lower_case(text: str, normal: str) -> None:
    """Compatibility forms and combining marks become their plain equivalents."""
    assert normalise(text) == normal

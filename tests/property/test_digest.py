"""The canonical form is RFC 8785's, whichever way it is written."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from support.ids import shown
from trunchray.core.digest import canonical

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    LEAVES | KEYS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)


@given(VALUES)
def test_all_values_get_the_form_of_the_standard(value):
    """The quick way and the standard's own give the same bytes."""
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [2**53, -(2**53), float("nan"), {"a": float("inf")}, "\ud800"], ids=shown)
def test_what_json_cannot_carry_is_refused(value):
    """Numbers that would lose digits, and text that is not Unicode, are a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each library words it differently
        canonical(value)

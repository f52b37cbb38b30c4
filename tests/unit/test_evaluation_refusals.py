"""How `evaluate` refuses what cannot be run."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from trunchray import UsageError, evaluate

GIVEN: dict[str, Any] = {"name": "e", "task": str.upper, "data": [{"input": "a"}], "scorers": {"x": True}}


def test_a_refusal_is_all_that_a_script_shows():
    """What led to it in our own code is nobody's concern; the line of somebody's own that raised is."""
    with pytest.raises(UsageError) as refused:
        evaluate(**GIVEN)
    assert "The above exception" not in "".join(traceback.format_exception(refused.value))

    def cases() -> Iterator[Any]:
        yield 1 / 0

    given: dict[str, Any] = GIVEN | {"data": cases(), "scorers": None}
    with pytest.raises(UsageError) as refused:
        evaluate(**given)
    assert "yield 1 / 0" in "".join(traceback.format_exception(refused.value))


def test_an_argument_that_there_is_not():
    """The one that was meant is suggested."""
    given: dict[str, Any] = GIVEN | {"scorer": {}}
    with pytest.raises(TypeError, match=r"evaluate\(\) has no argument 'scorer' — did you mean 'scorers'\?"):
        evaluate(**given)

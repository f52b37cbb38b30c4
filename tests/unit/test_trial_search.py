"""What a URL asks of the list of trials."""

from __future__ import annotations

import pytest

from trunchray.core.trial_search import PAGE, TrialSearch
from trunchray.errors import UsageError


def test_nothing_asked_is_everything_from_the_first_page():
    """Fields that are missing or left empty leave the search open, and what belongs to somebody else is passed over."""
    assert TrialSearch.read({}) == TrialSearch.read({"model": "", "text": "", "id": "c1"}) == TrialSearch()
    assert TrialSearch().offset == 0


def test_what_is_asked_is_read():
    """Numbers are numbers, and pages follow each other."""
    search = TrialSearch.read({"attempt": "2", "outcome": "failed", "page": "3", "sort": "score", "order": "down"})
    assert (search.attempt, search.outcome, search.offset) == (2, "failed", 2 * PAGE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempt", "x"),
        ("attempt", "0"),
        ("attempt", str(10**40)),
        ("outcome", "lost"),
        ("sort", "1; DROP TABLE trials"),
        ("page", "-1"),
        ("text", "a\0"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: str):
    """The message names the field."""
    with pytest.raises(UsageError, match=f"^{name}: "):
        TrialSearch.read({name: value})

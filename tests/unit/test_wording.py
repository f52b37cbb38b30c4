"""How figures and long texts are shown, wherever they are."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen, first_problem
from trunchray.core.markdown import text, whole_text
from trunchray.core.report import ErrorKind, Planned, PlannedModel
from trunchray.core.tally import Tally
from trunchray.core.wording import chance, coverage, distance, percent, points, share_range
from trunchray.frontends.annotations import field_names, inner


@pytest.mark.parametrize(("most", "shown"), [(5, "abcd…"), (6, "abcdef"), (1, "…")])
def test_an_excerpt_is_never_longer_than_asked(most: int, shown: str):
    """What is left out counts as one character, and a text that fits is whole."""
    assert excerpt("abcdef", most) == shown


def test_what_there_is_not_is_a_dash():
    """No figure is made up."""
    shown = [percent(None), points(None), distance(None), chance(None), share_range(None, 1), share_range(0, None)]
    assert set(shown) == {"–"}


def test_differences_have_a_sign_and_none_is_a_negative_nothing():
    """In percentage points."""
    assert [points(0.012), points(-0.012), points(-0.0), distance(0.012)] == ["+1.2 pp", "-1.2 pp", "+0.0 pp", "1.2 pp"]


def test_small_chances_are_not_shown_as_none():
    """0.000 would claim certainty."""
    assert [chance(0.0004), chance(0.001), chance(1)] == ["< 0.001", "0.001", "1.000"]


@pytest.mark.parametrize(
    ("graded", "shown"), [(0, "0.0%"), (6_667, "66.7%"), (6_666, "66.7%"), (9_999, "99.9%"), (10_000, "100%")]
)
def test_only_a_whole_coverage_is_100_percent(graded: int, shown: str):
    """One trial without a verdict in ten thousand is seen; else it is rounded as pass rates are."""
    model = PlannedModel("m", "a" * 64, "x", {"e": 10_000})
    empty = Tally(Planned("r", "d" * 64, "T", 1, (model,))).model(model)
    assert coverage(empty.model_copy(update={"passed": graded})) == shown


def test_markdown_shows_text_as_it_is():
    """Nothing is taken for markup, lines become one, and only what stands in a table is cut."""
    assert text("a|b\n*c* <d>") == "a\\|b \\*c\\* \\<d>"
    assert len(text("x" * 300)) == 200
    assert whole_text("x" * 300) == "x" * 300


class _Inner(Frozen):
    size: int = 0


class _Outer(Frozen):
    one: _Inner | None = None
    many: tuple[_Inner, ...] = ()
    named: dict[str, _Inner] = {}


@pytest.mark.parametrize("location", [("one",), ("many", 3), ("named", "x")])
def test_known_keys_are_found_wherever_a_shape_stands(location: tuple[Any, ...]):
    """In unions, lists and mappings alike."""
    annotation: Any = _Outer
    for step in location:
        annotation = inner(annotation, step)
    assert field_names(annotation) == ["size"]
    assert field_names(inner(annotation, "no such")) == []


def test_the_first_problem_has_its_place():
    """Nested ones, too."""
    with pytest.raises(ValidationError) as caught:
        _Outer.model_validate({"many": [{"size": "x"}]})
    assert first_problem(caught.value).startswith("many.0.size: Input should be a valid integer")


@pytest.mark.parametrize(
    ("kind", "mended_by_regrading"),
    [
        ("evaluator/crashed", True),
        ("evaluator/grading_error", False),
        ("evaluator/not_graded", False),
        ("provider/timeout", False),
    ],
)
def test_errors_that_a_mended_evaluator_grades(kind: str, mended_by_regrading: bool):
    """Not those of a skill's grader, which the same command and a retry ask again: each error has one way on."""
    assert ErrorKind(kind=kind, count=1, example="x").of_grading is mended_by_regrading

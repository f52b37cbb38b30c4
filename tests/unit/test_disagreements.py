"""The cases on which the models of a run differ most."""

from __future__ import annotations

from support.made_reports import Outcomes, made_report
from trunchray.core.contrast import SHOWN


def listed(models: dict[str, Outcomes]) -> list[str]:
    return [disagreement.case_id for disagreement in made_report(models).disagreements.cases]


def test_the_most_divided_come_first():
    """First what half of the models pass, then what most pass or fail; never where all agree."""
    models: dict[str, Outcomes] = {
        "a": {"e": "pppf"},
        "b": {"e": "pppf"},
        "c": {"e": "pfff"},
        "d": {"e": "pffp"},
    }
    assert listed(models) == ["e/1", "e/2", "e/3"]


def test_models_without_a_verdict_divide_nobody():
    """Errors and trials not run are no opinion; among those divided alike, more verdicts come first, then ids."""
    models: dict[str, Outcomes] = {"a": {"e": "pppp"}, "b": {"e": "effe"}, "c": {"e": "pepf"}, "d": {"e": "p-f-"}}
    assert listed(models) == ["e/2", "e/1", "e/3"]


def test_a_disagreement_names_every_model():
    """Each model has its attempts at the case: graded, passed, mean score, errors."""
    (disagreement,) = made_report({"a": {"e": ["pf"]}, "b": {"e": ["pp"]}, "c": {"e": ["e-"]}}).disagreements.cases
    assert (disagreement.case_id, disagreement.eval_id) == ("e/0", "e")
    assert [(f.model, f.graded, f.passed, f.score, f.errors) for f in disagreement.findings] == [
        ("a", 2, 1, 0.5, 0),
        ("b", 2, 2, 1.0, 0),
        ("c", 0, 0, None, 1),
    ]


def test_lists_are_bounded():
    """However many there are, the report names a few, and says how many there are."""
    found = made_report({"a": {"e": "p" * 90}, "b": {"e": "f" * 90}}).disagreements
    assert (found.count, len(found.cases)) == (90, SHOWN)


def test_one_model_agrees_with_itself():
    """With nobody to differ from, there is no list."""
    assert listed({"a": {"e": "pf"}}) == []

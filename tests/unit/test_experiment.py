"""Experiments as values: what they hold, how they are written, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.evaluations import concluded, experiment
from trunchray.core.check_result import CheckResult
from trunchray.core.evaluation import CaseOutcome, conclude
from trunchray.core.experiment import CheckRecord, Experiment
from trunchray.errors import UsageError

EXAMPLE = {
    "format": 2,
    "name": "refund-agent",
    "about": {"model": "qwen2.5:7b"},
    "cases": {
        "duplicate charge": {
            "refunds": {"pass": True, "value": 1},
            "readyToSend": {
                "pass": False,
                "value": 0.52,
                "probabilities": {"no": 0.48, "yes": 0.52},
                "confidence": 0.52,
            },
        }
    },
}


def refusal(value: object) -> str:
    with pytest.raises(UsageError) as refused:
        Experiment.parse(value, "compare 'x.json'")
    return str(refused.value)


def changed(**keys: object) -> dict[str, Any]:
    return EXAMPLE | keys


def test_the_example_of_the_format_is_read_and_written_as_it_is():
    """The same keys in the same order, and numbers as they stand there: 1, not 1.0."""
    assert Experiment.parse(EXAMPLE, "x").to_bytes().decode() == json.dumps(EXAMPLE, indent=2) + "\n"


def test_a_run_writes_the_example():
    """Probabilities and confidence of checks that a judge decides; no times, inputs, outputs or explanations."""
    case = CaseOutcome(
        name="duplicate charge",
        input="I was charged twice",
        output="Sorry",
        ms=12.5,
        checks={
            "readyToSend": CheckResult(
                passed=False,
                value=0.52,
                explanation="unsure (p=0.52)",
                probabilities={"no": 0.48, "yes": 0.52},
                confidence=0.52,
                escalated=True,
            ),
            "refunds": CheckResult(passed=True, value=1.0),
        },
    )
    scorers = ["refunds", "readyToSend"]
    about: Any = {"model": "qwen2.5:7b"}
    report = conclude("refund-agent", about, [case], scorers=scorers, allow={}, compare=None)
    assert report.experiment.to_bytes().decode() == json.dumps(EXAMPLE, indent=2) + "\n"


def test_cases_in_the_order_of_the_data_and_scorers_in_that_of_the_spec():
    """No sorting: a diff of two files shows what changed."""
    written = json.loads(experiment({"z": "pf", "a": "pp"}).to_bytes())
    assert list(written) == ["format", "name", "cases"]
    assert list(written["cases"]) == ["z", "a"]
    assert list(written["cases"]["z"]) == ["S", "T"]


def test_a_skipped_check_is_absent():
    """And a case that skips all of them is there, empty."""
    assert json.loads(experiment({"a": "ps", "b": "ss"}).to_bytes())["cases"] == {
        "a": {"S": {"pass": True, "value": 1}},
        "b": {},
    }


def test_about_is_optional():
    """Not written when there is none, and not missed when it is read."""
    bare = {key: value for key, value in EXAMPLE.items() if key != "about"}
    found = Experiment.parse(bare, "x")
    assert found.about is None
    assert "about" not in found.to_json()


def test_an_empty_about_is_written():
    """It was said, though it says nothing."""
    assert Experiment.parse(changed(about={}), "x").to_json()["about"] == {}


def test_text_is_written_as_it_is():
    """In UTF-8, not in escapes."""
    assert "prüfen — 検査".encode() in experiment({"prüfen — 検査": "p"}).to_bytes()


def test_the_file_ends_with_one_newline():
    """As text files do."""
    content = experiment({"a": "p"}).to_bytes()
    assert content.endswith(b"}\n")


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 0.30000000000000004, 1e-12, 2 / 3])
def test_values_are_read_back_as_they_were(value: float):
    """To the last bit."""
    record = CheckRecord(passed=False, value=value)
    before = Experiment(name="e", cases={"a": {"S": record}})
    assert Experiment.parse(json.loads(before.to_bytes()), "x") == before


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_carry_are_in_no_experiment(number: float):
    """So they cannot be written, wherever they stand."""
    with pytest.raises(ValueError, match="finite number"):
        Experiment(name="e", about={"t": number}, cases={})
    with pytest.raises(ValueError, match=r"finite number|less than or equal"):
        CheckRecord(passed=False, value=number)
    with pytest.raises(ValueError, match="finite number"):
        CheckRecord(passed=False, value=0, probabilities={"yes": number})


def test_what_others_add_is_passed_over():
    """A file may say more than is needed."""
    found = Experiment.parse(changed(note="mine", cases={"a": {"S": {"pass": True, "value": 1, "why": "x"}}}), "x")
    assert found.passed("a", "S") is True


@pytest.mark.parametrize("found", [1, 3, "2", None, True, 2.5, [2]])
def test_any_other_format_is_refused(found: object):
    """Format 1 included; the message says what was found and how to go on."""
    said = refusal(changed(format=found))
    assert said.startswith(f"compare 'x.json': it has format {found!r}, and only format 2 can be read; compare with")


def test_no_format_is_refused():
    """A file that does not say what it is, is not taken for one of ours."""
    assert "it names no format, and only format 2" in refusal({"name": "e", "cases": {}})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "[] is not an experiment"),
        ("x", "'x' is not an experiment"),
        (None, "None is not an experiment"),
        (changed(cases=[]), "cases: "),
        ({"format": 2, "name": "e"}, "cases: Field required"),
        ({"format": 2, "cases": {}}, "name: Field required"),
        (changed(name=3), "name: "),
        (changed(about=3), "about: "),
        (changed(cases={"a": {"S": {"value": 1}}}), "cases.a.S.pass: Field required"),
        (changed(cases={"a": {"S": {"pass": 1, "value": 1}}}), "cases.a.S.pass: "),
        (changed(cases={"a": {"S": {"pass": True}}}), "cases.a.S.value: Field required"),
        (changed(cases={"a": {"S": {"pass": True, "value": 2}}}), "cases.a.S.value: "),
        (changed(cases={"a": {"S": {"pass": True, "value": "1"}}}), "cases.a.S.value: "),
        (changed(cases={"a": {"S": {"pass": True, "value": float("nan")}}}), "it is not JSON: "),
        (changed(cases={"a": {"S": True}}), "cases.a.S: "),
        (changed(about={"f": print}), "it is not JSON: "),
    ],
)
def test_any_other_shape_is_refused(value: object, why: str):
    """With the place inside it, and the next step."""
    said = refusal(value)
    assert said.startswith(f"compare 'x.json': {why}")
    assert said.endswith("compare with what `save` of this evaluation wrote, or leave `compare` out")


def test_what_is_known_of_a_check():
    """True, False, or None for a case or scorer that is not there."""
    found = experiment({"a": "pfs"})
    assert [found.passed("a", name) for name in "STU"] == [True, False, None]
    assert found.passed("b", "S") is None


def test_a_report_and_its_experiment_say_the_same():
    """`report.experiment` is what is saved."""
    report = concluded({"a": "p"})
    assert report.to_json()["experiment"] == report.experiment.to_json() == json.loads(report.experiment.to_bytes())

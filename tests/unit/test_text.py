"""Evaluators that read the answer's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunchray.core.checks import AnswerBank, Contains, Exact, Gsm8k, NonEmpty
from trunchray.core.trial import Verdict
from trunchray.evaluators.quote import quote, quote_some
from trunchray.evaluators.text import TextCheck, final_number, grade_text

OURS = Path(__file__).parents[1] / "vectors"
OTHERS = Path(__file__).parents[2].parent / "shared" / "vectors"


def rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        pytest.skip(f"{path.name} is other people's data and is not beside this checkout")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", rows(OURS / "gsm8k.jsonl"), ids=lambda row: ascii(row["output"]))
def test_gsm8k_vectors(row: dict[str, Any]) -> None:
    """Every edge case of the published extraction rule comes out as published."""
    extracted = final_number(row["output"])
    assert (extracted or "[invalid]") == row["extracted"]
    assert grade_text(Gsm8k(expected=row["expected"]), row["output"]).passed is row["passed"]


def test_published_gsm8k_labels() -> None:
    """All 300 answers of four real models get the label their authors published."""
    published = rows(OTHERS / "gsm8k_model_outputs.jsonl")
    graded = [grade_text(Gsm8k(expected=row["expected"]), row["output"]).passed for row in published]
    assert len(published) == 300
    assert graded == [row["label"] for row in published]


def test_answer_bank_vectors() -> None:
    """Real answers about skateboarding tricks are graded as the author graded them."""
    for row in rows(OTHERS / "answer_bank.jsonl"):
        output, passed = row.pop("output"), row.pop("passed")
        assert grade_text(AnswerBank.model_validate(row), output).passed is passed, output


@pytest.mark.parametrize(
    ("check", "output"),
    [
        (NonEmpty(), "\x85"),
        (Exact(expected=" yes\n"), "\ufeffyes\u3000"),
        (Contains(expected=" PARIS "), "It is paris."),
        (AnswerBank(answers=("tre  flip",)), "TRE\u00a0\nFLIP!"),
        (AnswerBank(answers=("ab",), forbidden_answers=()), "cabs"),
        (Gsm8k(expected="1200"), "#### 1,200"),
    ],
)
def test_passing(check: TextCheck, output: str) -> None:
    """A passed check scores 1 and has nothing to say."""
    assert grade_text(check, output) == Verdict(passed=True, score=1, message=None)


@pytest.mark.parametrize(
    ("check", "output", "message"),
    [
        (NonEmpty(), " \ufeff\n", "the answer is empty"),
        (Exact(expected="Yes "), " yes", 'the answer is "yes", not "Yes"'),
        (Exact(expected="a"), "x" * 99, f'the answer is "{"x" * 80}…", not "a"'),
        (Contains(expected="Paris"), "Pari", 'the answer does not contain "Paris"'),
        (
            AnswerBank(answers=("flip",), forbidden_answers=("heel", "360 Heelflip")),
            "a 360  heelflip",
            'the answer contains the forbidden "heel"',
        ),
        (AnswerBank(answers=("b", "c")), "a", 'the answer contains none of "b", "c"'),
        (AnswerBank(answers=tuple("bcdefgh")), "a", 'the answer contains none of "b", "c", "d", "e", "f" and 2 more'),
        (Gsm8k(expected="41"), "41", "the answer has no '#### <number>'; expected \"41\""),
        (Gsm8k(expected="41"), "#### 41.0", 'extracted "41.0", expected "41"'),
    ],
)
def test_failing(check: TextCheck, output: str, message: str) -> None:
    """A failed check scores 0 and says which text was to blame."""
    assert grade_text(check, output) == Verdict(passed=False, score=0, message=message)


def test_forbidden_is_checked_first() -> None:
    """An accepted answer does not outweigh a forbidden one."""
    check = AnswerBank(answers=("tre flip",), forbidden_answers=("heelflip",))
    assert grade_text(check, "a tre flip, not a heelflip").passed is False


def test_quoted_values_can_always_be_stored() -> None:
    """Half an emoji is shown escaped, so that the message is valid UTF-8."""
    assert quote("\ud83d") == '"\\ud83d"'
    assert quote({"é": [1, True, None]}) == '{"é": [1, true, null]}'
    assert quote(["x" * 100]) == '["' + "x" * 78 + "…"
    assert quote_some(()) == ""

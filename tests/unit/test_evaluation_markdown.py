"""An evaluation's page, and its lines in a terminal."""

from __future__ import annotations

from support.evaluations import concluded, experiment, outcome, result
from trunchray.core.check_result import CheckResult
from trunchray.core.evaluation import EvaluationReport, conclude


def with_reasons(*results: CheckResult, **names: str) -> EvaluationReport:
    """One check, S, with these results."""
    cases = [
        outcome(names.get(f"c{number}", f"c{number}"), "p").model_copy(update={"checks": {"S": each}})
        for number, each in enumerate(results)
    ]
    return conclude(names.get("name", "e"), None, cases, scorers=["S"], allow={}, compare=None)


def test_the_page_of_the_worked_example():
    """The verdict, the table with broken limits in bold, what failed, what changed."""
    report = concluded({"a": "f", "b": "p", "c": "f"}, allow={"S": 2}, before={"a": "p", "b": "f", "c": "f", "d": "p"})
    assert (
        report.markdown()
        == """\
# e

**failed**: 1 of 1 check broke a limit

| check | pass | miss (allow) | drop (allow) | mean |
| --- | ---: | ---: | ---: | ---: |
| S | 1/3 | 2 (2) | **1 (0)** | 0.33 |

## Failed

- S — a
- S — c

## Changed

- fixed: S — b
- broke: S — a
- removed: d
"""
    )


def test_the_page_of_what_passes():
    """No list that would be empty; drops are no number where nothing was compared."""
    assert (
        concluded({"a": "pp"}).markdown()
        == """\
# e

**passed**: every limit is kept

| check | pass | miss (allow) | drop (allow) | mean |
| --- | ---: | ---: | ---: | ---: |
| S | 1/1 | 0 (0) | – (0) | 1.00 |
| T | 1/1 | 0 (0) | – (0) | 1.00 |
"""
    )


def test_the_worked_example_in_a_terminal():
    """The same, in aligned columns; ! is before what is broken."""
    report = concluded({"a": "f", "b": "p", "c": "m"}, allow={"S": 2}, before={"a": "p", "b": "f", "c": "f", "d": "p"})
    assert (
        report.text()
        == """\
e failed: 1 of 1 check broke a limit
  check  pass  miss (allow)  drop (allow)  mean
  S      !1/3         2 (2)        !1 (0)  0.33
failed:
  S — a
  S — c (must pass)
changed:
  fixed: S — b
  broke: S — a
  removed: d
"""
    )


def test_why_a_check_failed():
    """Its explanation; of one that gives none, what it was worth."""
    page = with_reasons(
        CheckResult.failed("unsure (p=0.52)"), CheckResult(passed=False, value=0.5), result(passed=False)
    ).markdown()
    assert "- S — c0: unsure (p=0.52)\n- S — c1: value 0.50\n- S — c2\n" in page


def test_what_a_case_must_pass_is_marked():
    """Its failure is no matter of counts."""
    assert "- S — a (must pass)\n" in concluded({"a": "m"}).markdown()


def test_pipes_and_newlines_are_escaped():
    """In names and explanations alike: a table row stays a row, a list item an item."""
    report = with_reasons(CheckResult.failed("a|b\n# c"), c0="x|\ny")
    assert "- S — x\\| y: a\\|b # c\n" in report.markdown()
    assert "S — x| y: a|b # c\n" in report.text()


def test_names_are_cut_at_80_characters():
    """Whole characters, before any is escaped."""
    report = with_reasons(CheckResult.failed("no"), c0="|" * 81)
    assert "- S — " + "\\|" * 79 + "…: no" in report.markdown()
    assert f"S — {'|' * 79}…: no" in report.text()
    assert f"S — {'x' * 80}: no" in with_reasons(CheckResult.failed("no"), c0="x" * 80).text()


def test_explanations_are_cut_at_200_characters():
    """The report has them whole."""
    report = with_reasons(CheckResult.failed("x" * 201))
    assert f": {'x' * 199}…\n" in report.markdown()


def test_names_of_checks_and_evaluations_are_escaped_and_cut_too():
    """They are anybody's text."""
    page = concluded({"a": "f"}).model_copy(update={"name": "y" * 79 + "_z"}).markdown()
    assert page.startswith(f"# {'y' * 79}…\n")


def test_lists_end_after_100_lines():
    """A comment on a pull request has bounds; what is left out is counted."""
    report = concluded({f"c{number}": "f" for number in range(1102)}, before={})
    assert "- S — c99\n- … and 1,002 more\n\n## Changed\n\n- added: c0\n" in report.markdown()
    assert "  S — c99\n  … and 1,002 more\nchanged:" in report.text()


def test_a_check_that_every_case_skips_has_no_mean():
    """And nothing passed, of nothing."""
    report = concluded({"a": "s"}, scorers=["S"], compare=experiment({"a": "p"}))
    assert "| S | 0/0 | 0 (0) | 0 (0) | – |" in report.markdown()


def test_one_check_explained():
    """Its broken limits with their cases, then why each case failed: those that are allowed to, too."""
    report = concluded({"a": "m", "b": "f", "c": "p"}, allow={"S": 1}, before={"a": "p"})
    assert (
        report.explained("S")
        == """\
2 misses, 1 allowed: 'a', 'b'; 1 drop, 0 allowed: 'a'; must pass: 'a'
  a (must pass)
  b"""
    )


def test_nothing_moves_the_cursor():
    """What a model says may hold anything; here it is spelt out."""
    report = with_reasons(CheckResult.failed("\x1b[2Jgone"), c0="\u202eeno")
    assert "  S — \\u202eeno: \\x1b[2Jgone\n" in report.text()
    assert "- S — \\\\u202eeno: \\\\x1b\\[2Jgone\n" in report.markdown()
    assert "\\u202eeno: \\x1b[2Jgone" in report.explained("S")


def test_a_run_that_failed_is_told_once():
    """Not once for each of the checks that it fails."""
    failed, other = CheckResult.failed("run failed: KeyError: 'a'"), CheckResult.failed("no")
    case = outcome("a", "pp").model_copy(update={"checks": {"S": failed, "T": failed}, "must": frozenset("T")})
    fine = outcome("b", "pp").model_copy(update={"checks": {"S": other, "T": other}})
    text = conclude("e", None, [case, fine], scorers=["S", "T"], allow={}, compare=None).text()
    assert text.endswith("failed:\n  S, T — a (must pass): run failed: KeyError: 'a'\n  S — b: no\n  T — b: no\n")

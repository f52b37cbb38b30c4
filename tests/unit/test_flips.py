"""What is told of verdicts that changed."""

from __future__ import annotations

import io
from typing import Any

import pytest

from support.terminal import Terminal
from trunchray.cli.regrade_tables import SHOWN, left_out_lines, show_flips
from trunchray.cli.screen import console
from trunchray.core.contrast import CaseList
from trunchray.core.flips import LISTED, FlipReport, FlipTally, Graded
from trunchray.engine.regrade import LeftOut


def graded(outcome: Any, *, case: str = "c", agent: str = "m", attempt: int = 1, **changes: Any) -> Graded:
    score = None if outcome == "error" else float(outcome == "passed")
    row = Graded("e", agent, case, attempt, outcome, score, None, gradable=outcome == "error")
    return row._replace(**changes)


def report(*pairs: tuple[Graded, Graded]) -> FlipReport:
    """Of what rows were and what they are."""
    tally = FlipTally()
    for agent in dict.fromkeys(new.agent for _, new in pairs):
        mine = [(old, new) for old, new in pairs if new.agent == agent]
        tally.add([new for _, new in mine], {(old.attempt, old.case_id): old for old, _ in mine})
    return tally.report()


def shown(found: FlipReport) -> list[str]:
    out = io.StringIO()
    show_flips(console(out), found, "runs/r")
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_every_kind_of_change_is_counted():
    """By model, eval, and what the outcome was and is; a trial without a row from before is not compared."""
    tally = FlipTally()
    before = {"a": "passed", "b": "failed", "c": "error", "d": "passed"}
    old = {(1, case): graded(outcome, case=case) for case, outcome in before.items()}
    after = {"d": "passed", "c": "passed", "b": "error", "a": "failed", "e": "passed"}
    new = [graded(outcome, case=case) for case, outcome in after.items()]
    flips = tally.add(new, old)
    assert [(flip.case_id, flip.old.outcome, flip.new.outcome) for flip in flips] == [
        ("a", "passed", "failed"),
        ("b", "failed", "error"),
        ("c", "error", "passed"),
    ]
    found = tally.report()
    assert (found.compared, found.flipped, found.rescored, found.ungraded) == (4, 3, 0, 1)
    assert {(one.old, one.new, one.count) for one in found.counts} == {
        ("passed", "failed", 1),
        ("failed", "error", 1),
        ("error", "passed", 1),
    }
    assert found.flips == tuple(flips)


def test_another_score_is_no_flip():
    """The outcome is the verdict; what only moved its score is counted beside it."""
    found = report((graded("failed"), graded("failed", score=0.5)))
    assert (found.flipped, found.rescored, found.flips) == (0, 1, ())
    assert shown(found) == ["no verdict of 1 has changed; 1 kept theirs with another score"]


def test_attempts_are_told_apart():
    """Each attempt at a case is compared with itself."""
    found = report((graded("passed"), graded("passed")), (graded("passed", attempt=2), graded("failed", attempt=2)))
    assert [(flip.case_id, flip.attempt) for flip in found.flips] == [("c", 2)]
    assert "c (m, attempt 2): passed → failed" in shown(found)


def test_long_lists_are_bounded():
    """Counts are of all flips; a report lists so many of them, and a screen fewer."""
    pairs = [(graded("passed", case=f"c{n:05d}"), graded("failed", case=f"c{n:05d}")) for n in range(LISTED + 5)]
    others = [(old._replace(agent="n"), new._replace(agent="n")) for old, new in pairs[:1]]
    found = report(*pairs, *others)
    assert (found.flipped, len(found.flips)) == (LISTED + 6, LISTED)
    lines = shown(found)
    assert sum(line.startswith("c0") for line in lines) == SHOWN
    assert f"and {LISTED + 6 - SHOWN:,} more" in lines


def test_why_it_flipped():
    """What both graders said stands beside the outcome, with a score between none and all."""
    found = report(
        (graded("error", message="evaluator/threw: no\nsuch field"), graded("failed", score=0.25, message="half")),
        (graded("passed", agent="n"), graded("error", agent="n", message="evaluator/timeout: 5 s")),
    )
    lines = shown(found)
    assert "c (m): error (evaluator/threw: no such field) → failed 0.25 (half)" in lines
    assert "c (n): passed → error (evaluator/timeout: 5 s)" in lines
    table = lines.index("model / eval error → failed passed → error")
    assert lines[table + 1 : table + 3] == ["m / e 1 0", "n / e 0 1"]


def test_words_are_no_markup(monkeypatch: pytest.MonkeyPatch):
    """Messages of graders cannot move a terminal's cursor or colour it."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    found = report((graded("passed", case="[red]c[/red]"), graded("failed", case="[red]c[/red]", message="\x1b[2J")))
    show_flips(console(terminal), found, "runs/r")
    assert "[red]c[/red]" in terminal.text()
    assert "\x1b[2J" not in terminal.text()


def test_what_is_left_out_is_named():
    """One line for each reason, and none where there is nothing to say."""
    many = CaseList.of((f"c{n:02d}" for n in range(12)), 100)
    lines = list(left_out_lines(LeftOut(changed=many, added=CaseList.of(["x"], 100))))
    assert lines == [
        f"left out, because asked otherwise by the new release: 12 cases ({', '.join(many.cases[:10])}, …)",
        "left out, because new, so that nobody has answered: 1 case (x)",
    ]

"""Sweeping thresholds over a labelled sample."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from trunchray.core.calibration import Sample, calibrated
from trunchray.core.decisions import Decision, Fallback
from trunchray.core.rule import yes_no
from trunchray.errors import UsageError
from trunchray.evaluators.judges.bars import system_one
from trunchray.evaluators.judges.function import FunctionJudge
from trunchray.evaluators.judges.scripted import ScriptedJudge
from trunchray.evaluators.python.asking import ask
from trunchray.evaluators.python.words import mentions
from trunchray.frontends.evaluation.calibrate import Calibration, acalibrate, calibrate

P = (0.95, 0.72, 0.55, 0.4, 0.1, 0.85)
LABELS = (True, True, False, False, False, False)
READY = {"ready": "Is it ready?"}
TONE = ask("Which tone?", options=["warm", "cold", "rude"], pass_=["warm"])
LEVEL = ask("How good?", levels=["poor", "fair", "good"], pass_="fair")


def judge_of(answers: Any) -> FunctionJudge:
    """Decides by what was put out: `answers` gives the decision of each question for an output."""

    def judge(asked: Mapping[str, Any]) -> Any:
        output = asked["state"]["output"]
        return {"decisions": [{"id": each["id"], **answers(output)} for each in asked["questions"]]}

    return FunctionJudge(judge)


def noul(output: float) -> dict[str, Any]:
    return {"type": "noul", "noul": output}


def choice(probabilities: Mapping[str, float], chosen: str | None = None) -> dict[str, Any]:
    top = chosen or max(probabilities, key=lambda name: probabilities[name])
    return {"type": "choice", "choice": top, "probabilities": probabilities, "confidence": 0.5}


def echo(value: Any) -> Any:
    return value


def run(cases: Any, checks: Any = READY, judge: Any = None, **given: Any) -> Calibration:
    named = [{"name": f"case {n}", **case} for n, case in enumerate(cases)]
    return calibrate("refunds", **{"run": echo, "quiet": True, **given}, cases=named, checks=checks, judge=judge)


def of_yes_no(**given: Any) -> Calibration:
    """The worked example: six cases, whose inputs are what the judge makes of them."""
    cases = [{"input": p, "labels": {"ready": label}} for p, label in zip(P, LABELS, strict=True)]
    return run(cases, judge=judge_of(noul), **given)


def test_the_worked_example() -> None:
    """p = .95 .72 .55 .4 .1 .85, labelled T T F F F F: 0.9 is recommended, which decides two of six."""
    [check] = of_yes_no().checks
    counts = {row.thresholds["yes"]: (row.agree, row.unsure, row.disagree) for row in check.rows}
    assert counts[0.5] == (4, 0, 2)
    assert counts[0.85] == (2, 3, 1)
    assert counts[0.9] == (2, 4, 0)
    assert check.recommended == {"yes": 0.9, "no": 0.1}
    assert (check.n, check.errors, check.kind) == (6, (), "yes/no")
    assert check.best is not None
    assert check.best.coverage == pytest.approx(2 / 6)


def test_the_shape_of_a_row() -> None:
    """Each check has its rows, what is recommended, the number of samples and the errors."""
    [check] = of_yes_no().to_json()
    assert isinstance(check, dict)
    assert list(check) == ["check", "kind", "rows", "recommended", "n", "errors"]
    assert check["rows"][0] == {"yes": 0.5, "no": 0.5, "agree": 4, "unsure": 0, "disagree": 2}  # type: ignore[index, call-overload]  # a list of rows


def test_yes_is_swept_with_no_mirrored() -> None:
    """From 0.50 to 0.95 in steps of 0.05, with no = 1 - yes to two decimals."""
    [check] = of_yes_no().checks
    bars = [(row.thresholds["yes"], row.thresholds["no"]) for row in check.rows]
    assert [str(yes) for yes, _ in bars] == [
        "0.5", "0.55", "0.6", "0.65", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95",
    ]  # fmt: skip
    assert [str(no) for _, no in bars] == ["0.5", "0.45", "0.4", "0.35", "0.3", "0.25", "0.2", "0.15", "0.1", "0.05"]


def test_ask_sweeps_sure() -> None:
    """From 0.30 to 0.95; a label is whether it should pass, or the right answer."""
    cases = [
        {"input": {"warm": 0.9, "cold": 0.1, "rude": 0.0}, "labels": {"tone": True}},
        {"input": {"warm": 0.2, "cold": 0.5, "rude": 0.3}, "labels": {"tone": "rude"}},
        {"input": {"warm": 0.2, "cold": 0.5, "rude": 0.3}, "labels": {"tone": False}},
        {"input": {"warm": 0.4, "cold": 0.3, "rude": 0.3}, "labels": {"tone": "cold"}},
    ]
    [check] = run(cases, {"tone": TONE}, judge_of(choice)).checks
    assert [row.thresholds["sure"] for row in check.rows] == [n / 100 for n in range(30, 100, 5)]
    counts = {row.thresholds["sure"]: (row.agree, row.unsure, row.disagree) for row in check.rows}
    assert counts[0.3] == (2, 0, 2)
    assert counts[0.4] == (2, 0, 2)
    assert counts[0.45] == (2, 1, 1)
    assert counts[0.55] == (1, 3, 0)
    assert (check.kind, check.recommended) == ("ask", {"sure": 0.55})


def test_levels() -> None:
    """A level passes from the one asked for on; a label may be a level, or whether it passes."""

    def graded(p: list[float]) -> dict[str, Any]:
        names = {str(n): share for n, share in enumerate(p)}
        return {
            "type": "score",
            "score": 1,
            "legend": dict.fromkeys(names, ""),
            "probabilities": names,
            "confidence": 1,
        }

    cases = [
        {"input": [0.1, 0.1, 0.8], "labels": {"level": True}},
        {"input": [0.1, 0.8, 0.1], "labels": {"level": "good"}},
    ]
    [check] = run(cases, {"level": LEVEL}, judge_of(graded)).checks
    assert (check.rows[0].agree, check.rows[0].disagree) == (1, 1)


def test_the_fewest_disagreements_win() -> None:
    """Where some are confidently wrong at every threshold, the one with the fewest is recommended, then the lowest."""
    cases = [{"input": 0.99, "labels": {"ready": False}}, {"input": 0.6, "labels": {"ready": False}}]
    [check] = run(cases, judge=judge_of(noul)).checks
    assert check.recommended == {"yes": 0.65, "no": 0.35}
    assert check.best is not None
    assert (check.best.agree, check.best.unsure, check.best.disagree) == (0, 1, 1)


def test_a_threshold_itself_decides() -> None:
    """p equal to yes passes, and p equal to no fails; yes is looked at first."""
    rows = calibrated(
        "ready",
        yes_no(),
        [Sample("a", label=True, decision=Decision("ready", {"yes": 0.5, "no": 0.5}))],
    ).rows
    assert [(row.agree, row.unsure) for row in rows[:2]] == [(1, 0), (0, 1)]


def test_a_checks_own_bars_play_no_part() -> None:
    """They are what is being looked for, even where they would not go together with the usual ones."""
    own = {"ready": {"question": "Is it ready?", "yes": 0.2}}
    cases = [{"input": p, "labels": {"ready": label}} for p, label in zip(P, LABELS, strict=True)]
    assert run(cases, own, judge_of(noul)).checks == of_yes_no().checks


def test_cases_without_a_label() -> None:
    """A check is not asked about them, and a case without any label is not even run."""
    judge, ran = ScriptedJudge({"ready": 0.9, "tone": {"warm": 0.9, "cold": 0.1, "rude": 0.0}}), list[Any]()
    cases = [
        {"input": 1, "labels": {"ready": True}},
        {"input": 2, "labels": {"tone": True, "ready": True}},
        {"input": 3, "labels": {}},
    ]
    found = run(cases, {**READY, "tone": TONE}, judge, run=ran.append)
    assert [check.n for check in found.checks] == [2, 1]
    assert sorted(ids for _, ids in judge.asked) == [("ready",), ("ready", "tone")]
    assert sorted(ran) == [1, 2]


def test_what_a_judge_sees() -> None:
    """The same state as in an evaluation."""
    judge = ScriptedJudge({"ready": 0.9})
    run([{"input": "a", "expectedOutput": None, "labels": {"ready": True}}], judge=judge)
    run([{"input": "a", "labels": {"ready": True}}], judge=judge)
    assert [state for state, _ in judge.asked] == [
        {"input": "a", "output": "a", "expectedOutput": None, "steps": []},
        {"input": "a", "output": "a", "steps": []},
    ]


def test_escalation_is_not_used() -> None:
    """What the judge itself makes of a case is what is counted."""
    sent: list[str] = []

    class Agent:
        def send(self, prompt: str) -> None:
            sent.append(prompt)

    found = run([{"input": 0.5, "labels": {"ready": True}}], judge=ScriptedJudge({"ready": 0.5}, escalate=Agent()))
    assert (found.checks[0].rows[4].unsure, sent) == (1, [])


def fail(value: Any) -> Any:
    raise ValueError(f"no {value}")


async def hang(_value: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"run": fail}, "run failed: ValueError: no 0.5"),
        ({"run": hang, "timeout": "10ms"}, "run failed: timed out after 0.01 s"),
        ({"run": lambda _: object()}, "judge: the output has no JSON form"),
        ({"judge": ScriptedJudge(Fallback("network", "down"))}, "judge: network: down"),
        ({"judge": FunctionJudge(hang, timeout=0.01)}, "judge: timeout: no answer in 0.01 s"),
        ({"judge": judge_of(lambda _: {"type": "noul", "noul": 1.5})}, "judge: parse-error"),
    ],
    ids=["raises", "hangs", "no JSON", "fallback", "judge hangs", "no decision"],
)
def test_errors_are_not_unsure(given: Any, reason: str) -> None:
    """A run that fails and a judge that does not decide are listed apart, and nothing is recommended of them."""
    [check] = run([{"input": 0.5, "labels": {"ready": True}}], **{"judge": judge_of(noul), **given}).checks
    [error] = check.errors
    assert error.case == "case 0"
    assert error.reason.startswith(reason)
    assert (check.n, check.recommended) == (0, None)
    assert all(row.agree + row.unsure + row.disagree == 0 for row in check.rows)


def test_a_decision_that_contradicts_itself() -> None:
    """It picks one option and holds another to be likelier: that is an error at every threshold."""
    contradictory = judge_of(lambda output: choice(output, "cold"))
    cases = [{"input": {"warm": 0.6, "cold": 0.4, "rude": 0.0}, "labels": {"tone": True}}]
    [check] = run(cases, {"tone": TONE}, contradictory).checks
    assert [(error.case, error.reason) for error in check.errors] == [("case 0", "inconsistent decision")]
    assert check.n == 0


async def test_a_few_cases_at_a_time() -> None:
    """No more than `concurrency` cases are under way, and results stand in the order of the cases."""
    under_way, most, full = 0, 0, asyncio.Event()

    async def task(value: float) -> float:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        under_way -= 1
        return value

    cases = [{"input": n / 10, "labels": {"ready": True}} for n in range(10)]
    judge = ScriptedJudge(Fallback("network"))
    found = await acalibrate("x", run=task, cases=cases, checks=READY, judge=judge, concurrency=3, quiet=True)
    assert most == 3
    assert [error.case for error in found.checks[0].errors] == ["0", *(f"0.{n}" for n in range(1, 10))]


async def test_within_a_running_event_loop() -> None:
    """The message says what to write instead."""
    with pytest.raises(UsageError, match="await acalibrate"):
        run([{"input": 1, "labels": {"ready": True}}], judge=ScriptedJudge({}))


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed, and says how much of the sample the recommended threshold decides."""
    found = of_yes_no(quiet=False)
    printed = capsys.readouterr().out
    assert printed == found.markdown()
    assert printed.splitlines()[:8] == [
        "# refunds: calibration",
        "",
        "## ready (yes/no)",
        "",
        "Recommended: **yes 0.90, no 0.10**. Confident disagreements: none. Decided: 2 of 6 cases (33.3%).",
        "",
        "| yes | no | agree | unsure | disagree | decided |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    assert "| 0.85 | 0.15 | 2 | 3 | 1 | 50.0% |" in printed
    assert "| **0.90** | **0.10** | **2** | **4** | **0** | **33.3%** |" in printed
    assert found.recommended == {"ready": {"yes": 0.9, "no": 0.1}}


def test_the_table_without_a_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors are listed with their reasons, and shown as they are, however they are written."""
    found = run([{"input": "a", "labels": {"ready": True}}], judge=ScriptedJudge(Fallback("network", "a | b")))
    assert capsys.readouterr().out == ""
    assert found.markdown().endswith(
        "Nothing is recommended: no labelled case was decided.\n\n"
        "Not decided (1), and counted nowhere above:\n\n- case 0: judge: network: a \\| b\n"
    )
    assert found.recommended == {}


CASE = {"input": 1, "labels": {"ready": True}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"judge": None}, "has no judge"),
        ({"judge": system_one()}, "only sets thresholds"),
        ({"checks": {"ready": "Ready?", "words": mentions(["x"])}}, "'words' is code"),
        ({"checks": {}}, "checks: no checks; give at least one question"),
        ({"run": 42}, "int"),
        ({"concurrency": 0}, "concurrency: expected a whole number from 1 to 100,000, got 0"),
        ({"timeout": "soon"}, "timeout"),
        ({"cases": []}, "cases: there is no case"),
        ({"cases": "cases.jsonl"}, "cases: expected a list of cases, got str"),
        ({"cases": [7]}, r"cases\[0\]: a case is an object"),
        ({"cases": [{"labels": {}}]}, r"cases\[0\]: a case needs 'input'"),
        ({"cases": [CASE, {"input": 1}]}, r"cases\[1\]: a case needs 'labels'"),
        ({"cases": [{**CASE, "label": {}}]}, "unknown key 'label' — did you mean 'labels'"),
        ({"cases": [{**CASE, "expected": 1}]}, "the expected output is 'expectedOutput'"),
        ({"cases": [{**CASE, "labels": {"raedy": True}}]}, "'raedy': there is no such check — did you mean 'ready'"),
        ({"cases": [{**CASE, "labels": {"ready": "yes"}}]}, "'ready': expected True or False, got 'yes'"),
        ({"cases": [{**CASE, "labels": {"ready": 1}}]}, "expected True or False, got 1"),
        ({"cases": [{**CASE, "labels": ["ready"]}]}, "expected a mapping of checks to labels"),
        ({"cases": [{**CASE, "input": object()}]}, "input: object is not a JSON value"),
        ({"cases": [{**CASE, "name": 3}]}, "name: expected a text, got 3"),
    ],
)
def test_what_cannot_be_calibrated(given: Any, said: str) -> None:
    """It is refused before anything runs, with its place."""
    ran: list[Any] = []
    asked = {"run": ran.append, "cases": [CASE], "checks": READY, "judge": ScriptedJudge({}), **given}
    with pytest.raises(UsageError, match=said):
        calibrate("x", **asked)
    assert ran == []


def test_a_label_that_is_no_answer() -> None:
    """Of what ask makes the names are told."""
    with pytest.raises(UsageError, match="expected True or False, or one of 'warm', 'cold', 'rude', got 'kind'"):
        run([{"input": 1, "labels": {"tone": "kind"}}], {"tone": TONE}, ScriptedJudge({}))

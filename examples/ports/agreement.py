"""What the ports share: labelled answers, a judge that replays recorded ones, and how often a check is right."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trunchray import EvaluationReport, evaluate, judge_model


@dataclass(frozen=True)
class Labelled:
    """The file of a port: answers, their labels, and what a judge is taken to have said of each."""

    cases: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, port: str) -> Labelled:
        """Read `<port>.json`, which is beside this file."""
        return cls(json.loads(Path(__file__).with_name(f"{port}.json").read_text(encoding="utf-8"))["cases"])

    def judge(self) -> Any:
        """A judge that repeats what is recorded about a case, which it knows by the `id` in the input."""
        recorded = {case["id"]: case["recorded"] for case in self.cases}

        def answers(asked: dict[str, Any]) -> dict[str, Any]:
            found = recorded[asked["state"]["input"]["id"]]
            return {"decisions": [decision(question, found) for question in asked["questions"]]}

        return judge_model(answers)


def decision(question: Mapping[str, Any], shares: Mapping[str, float]) -> dict[str, Any]:
    """The decision of a judge that gives the answers these probabilities."""
    likeliest = max(shares.values())
    if question["type"] == "choice":
        choice = next(name for name in shares if shares[name] == likeliest)
        rest = {"choice": choice, "probabilities": shares, "confidence": likeliest}
        return {"id": question["id"], "type": "choice", **rest}
    return {
        "id": question["id"],
        "type": "score",
        "score": sum(level * share for level, share in enumerate(shares.values())),
        "legend": {str(level): name for level, name in enumerate(shares)},
        "probabilities": {str(level): share for level, share in enumerate(shares.values())},
        "confidence": likeliest,
    }


def measured(
    evaluation: Mapping[str, Any], labels: Mapping[str, bool], checks: Mapping[str, Sequence[str]]
) -> EvaluationReport:
    """Run a port, and print how often each of `checks` agrees with the labels. `--model ID` makes a model the judge.

    `labels` says whether each case should pass. `checks` maps a title to the scorers that decide: a case passes if
    all of those pass that it does not skip.
    """
    model = model_option() if "judge" in evaluation else {}
    judge = {"judge": judge_model(model)} if model else {}
    report = evaluate(**{**evaluation, **judge, "quiet": True})
    print(f"{evaluation['name']}: {len(labels)} labelled answers, {judged(evaluation, model)}")
    print(f"  {'check':<12}  agrees  passes wrongly  fails wrongly")
    for check, names in checks.items():
        print(f"  {check:<12}  {agreement(report, labels, names)}")
    for reason in sorted(unjudged(report)):
        print(f"  not judged: {reason}")
    return report


def model_option() -> dict[str, str]:
    """The model that the command line names; empty if it names none."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", metavar="ID", help="ask this model instead of replaying what is recorded")
    parser.add_argument("--base-url", metavar="URL", help="its endpoint, if not that of its provider")
    given = parser.parse_args()
    return {"id": given.model, **({"base_url": given.base_url} if given.base_url else {})} if given.model else {}


def judged(evaluation: Mapping[str, Any], model: Mapping[str, str]) -> str:
    """Who decided, for the heading."""
    if "judge" not in evaluation:
        return "judged by code"
    return f"judged by {model['id']}" if model else "judged by answers that are recorded; no model was asked"


def agreement(report: EvaluationReport, labels: Mapping[str, bool], names: Sequence[str]) -> str:
    """One line of the table, without its title."""
    passed = {
        case.name: all(case.checks[name].passed for name in names if name in case.checks) for case in report.cases
    }
    wrong_passes = sum(passed[case] and not right for case, right in labels.items())
    wrong_fails = sum(not passed[case] and right for case, right in labels.items())
    agrees = len(labels) - wrong_passes - wrong_fails
    return f"{agrees:>3}/{len(labels):<2}  {wrong_passes:>14}  {wrong_fails:>13}"


def unjudged(report: EvaluationReport) -> set[str]:
    """Why the judge did not decide some checks."""
    said = [check.explanation or "" for case in report.cases for check in case.checks.values()]
    return {each for each in said if each.startswith("judge: ")}

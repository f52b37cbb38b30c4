"""Helpfulness from 1 to 10: is a reply worth at least 7? The baseline: it has at least twenty words.

With ten levels a judge is seldom sure of one, so the bar for that is lower than usual.

    python examples/ports/helpfulness.py [--model openai/gpt-4o-mini]
    trunchray eval run examples/ports/helpfulness.py
"""

from __future__ import annotations

from typing import Any

from agreement import Labelled, measured

from trunchray import RunRecord, ask

FILE = Labelled.of("helpfulness")
ANSWERS = {case["id"]: case["answer"] for case in FILE.cases}
LEVELS = [str(number) for number in range(1, 11)]


def answer(asked: dict[str, Any]) -> str:
    """The task: a recorded reply."""
    return ANSWERS[asked["id"]]


def long(run: RunRecord) -> bool:
    """It has at least twenty words."""
    return len(run.output.split()) >= 20


evaluation: dict[str, Any] = {
    "name": "helpfulness",
    "task": answer,
    "data": [{"name": case["id"], "input": {"id": case["id"], "question": case["question"]}} for case in FILE.cases],
    "scorers": {
        "helpful": ask("How helpful is the output, from 1 (useless) to 10?", levels=LEVELS, pass_="7", sure=0.3),
        "long": long,
    },
    "judge": FILE.judge(),
    "allow": {"helpful": len(FILE.cases), "long": len(FILE.cases)},
}

if __name__ == "__main__":
    labels = {case["id"]: case["label"] >= 7 for case in FILE.cases}
    measured(evaluation, labels, {"judge": ["helpful"], "naive": ["long"]})

"""Keyword overlap: how many of the words that matter are in the answer. The baseline: it is the reference.

python examples/ports/keywords.py
trunchray eval run examples/ports/keywords.py
"""

from __future__ import annotations

from typing import Any

from agreement import Labelled, measured

from trunchray import RunRecord, matches, mentions

FILE = Labelled.of("keywords")
ANSWERS = {case["id"]: case["answer"] for case in FILE.cases}


def answer(asked: dict[str, Any]) -> str:
    """The task: a recorded answer."""
    return ANSWERS[asked["id"]]


def keywords(run: RunRecord) -> list[str]:
    """The words that the answer to a question needs."""
    given: Any = run.input
    return given["keywords"]


evaluation: dict[str, Any] = {
    "name": "keywords",
    "task": answer,
    "data": [
        {
            "name": case["id"],
            "input": {key: case[key] for key in ("id", "question", "keywords")},
            "expectedOutput": case["expected"],
        }
        for case in FILE.cases
    ],
    "scorers": {"overlap": mentions(keywords, at_least=0.6), "the same": matches()},
    "allow": {"overlap": len(FILE.cases), "the same": len(FILE.cases)},
}

if __name__ == "__main__":
    labels = {case["id"]: case["label"] for case in FILE.cases}
    measured(evaluation, labels, {"overlap": ["overlap"], "naive": ["the same"]})

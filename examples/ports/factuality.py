"""ABCDE factuality: how an answer compares with an expert's, in five ways. The baseline: it contains it.

python examples/ports/factuality.py [--model openai/gpt-4o-mini]
trunchray eval run examples/ports/factuality.py
"""

from __future__ import annotations

from typing import Any

from agreement import Labelled, measured

from trunchray import ask, includes

FILE = Labelled.of("factuality")
ANSWERS = {case["id"]: case["answer"] for case in FILE.cases}
GOOD = ("C", "E")
RELATIONS = {
    "A": {"credit": 0.4, "description": "the output says part of what is expected, and contradicts none of it"},
    "B": {"credit": 0.6, "description": "the output says all that is expected and more, and contradicts none of it"},
    "C": {"credit": 1, "description": "the output says the same as is expected"},
    "D": {"credit": 0, "description": "the output contradicts what is expected"},
    "E": {"credit": 1, "description": "they differ, but in nothing that matters for the question"},
}


def answer(asked: dict[str, Any]) -> str:
    """The task: a recorded answer."""
    return ANSWERS[asked["id"]]


evaluation: dict[str, Any] = {
    "name": "factuality",
    "task": answer,
    "data": [
        {
            "name": case["id"],
            "input": {"id": case["id"], "question": case["question"]},
            "expectedOutput": case["expected"],
        }
        for case in FILE.cases
    ],
    "scorers": {
        "factual": ask("How does what the output says compare with expectedOutput?", options=RELATIONS, pass_at=1),
        "contains it": includes(),
    },
    "judge": FILE.judge(),
    "allow": {"factual": len(FILE.cases), "contains it": len(FILE.cases)},
}

if __name__ == "__main__":
    labels = {case["id"]: case["label"] in GOOD for case in FILE.cases}
    measured(evaluation, labels, {"judge": ["factual"], "naive": ["contains it"]})

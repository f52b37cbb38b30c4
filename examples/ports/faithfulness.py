"""Faithfulness: does the context support all that an answer says? The baseline: most of its words are in there.

python examples/ports/faithfulness.py [--model openai/gpt-4o-mini]
trunchray eval run examples/ports/faithfulness.py
"""

from __future__ import annotations

import re
from typing import Any

from agreement import Labelled, measured

from trunchray import RunRecord, ask

FILE = Labelled.of("faithfulness")
ANSWERS = {case["id"]: case["answer"] for case in FILE.cases}
VERDICTS = {
    "faithful": {"credit": 1, "description": "the context says or implies every claim of the output"},
    "partial": {"credit": 0.5, "description": "it says some of them, and contradicts none"},
    "unfaithful": {"credit": 0, "description": "it contradicts one of them, or says none"},
}


def answer(asked: dict[str, Any]) -> str:
    """The task: a recorded answer."""
    return ANSWERS[asked["id"]]


def shared_words(run: RunRecord) -> bool:
    """Four of five words of the output are in the context."""
    given: Any = run.input
    said, known = (set(re.findall(r"\w+", text.lower())) for text in (run.output, given["context"]))
    return len(said & known) >= 0.8 * len(said)


evaluation: dict[str, Any] = {
    "name": "faithfulness",
    "task": answer,
    "data": [
        {"name": case["id"], "input": {key: case[key] for key in ("id", "question", "context")}} for case in FILE.cases
    ],
    "scorers": {
        "faithful": ask("Is the output faithful to the context in the input?", options=VERDICTS, pass_at=1),
        "shared words": shared_words,
    },
    "judge": FILE.judge(),
    "allow": {"faithful": len(FILE.cases), "shared words": len(FILE.cases)},
}

if __name__ == "__main__":
    labels = {case["id"]: case["label"] == "faithful" for case in FILE.cases}
    measured(evaluation, labels, {"judge": ["faithful"], "naive": ["shared words"]})

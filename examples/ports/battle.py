"""A pairwise battle: is the new answer at least as good as the old one? The baseline: it is at least as long.

Judges may prefer what they read first, so each pair is judged in both orders. A check concerns one order, and the cases
of the other one skip it.

    python examples/ports/battle.py [--model openai/gpt-4o-mini]
    trunchray eval run examples/ports/battle.py
"""

from __future__ import annotations

from typing import Any

from agreement import Labelled, measured

from trunchray import RunRecord, ask

FILE = Labelled.of("battle")
PAIRS = {case["id"]: case for case in FILE.cases}
QUESTION = "Which of the two answers in the output answers the question in the input better?"
OPTIONS = ["first", "second", "tie"]
ORDERS = {"new first": "old first", "old first": "new first"}


def answers(asked: dict[str, Any]) -> dict[str, str]:
    """The task: two recorded answers, in the order of the case."""
    pair = PAIRS[asked["id"]]
    return {"first": pair["first"], "second": pair["second"]}


def longer(run: RunRecord) -> bool:
    """The new answer is at least as long as the old one."""
    given: Any = run.input
    new_first = PAIRS[given["id"]]["order"] == "new first"
    new, old = ("first", "second") if new_first else ("second", "first")
    return len(run.output[new]) >= len(run.output[old])


evaluation: dict[str, Any] = {
    "name": "battle",
    "task": answers,
    "data": [
        {
            "name": case["id"],
            "input": {"id": case["id"], "question": case["question"]},
            "skip": [ORDERS[case["order"]]],
        }
        for case in FILE.cases
    ],
    "scorers": {
        "new first": ask(QUESTION, options=OPTIONS, pass_=["first", "tie"]),
        "old first": ask(QUESTION, options=OPTIONS, pass_=["second", "tie"]),
        "longer": longer,
    },
    "judge": FILE.judge(),
    "allow": {"new first": len(FILE.cases), "old first": len(FILE.cases), "longer": len(FILE.cases)},
}

if __name__ == "__main__":
    labels = {case["id"]: case["label"] != "old" for case in FILE.cases}
    report = measured(evaluation, labels, {"judge": list(ORDERS), "naive": ["longer"]})
    won = {case.name: case.checks[PAIRS[case.name]["order"]].passed for case in report.cases}
    pairs = [(first, first.replace("-new", "-old")) for first in won if first.endswith("-new")]
    print(f"  pairs that the order decides: {sum(won[one] != won[two] for one, two in pairs)} of {len(pairs)}")

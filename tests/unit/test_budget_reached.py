"""What is said when a budget ends a run."""

from __future__ import annotations

import pytest

from support.made_reports import made_report
from trunchray.cli.cost import budget_reached
from trunchray.core.budget import Budget
from trunchray.core.estimate import ModelEstimate, Range
from trunchray.core.receipt import Counts
from trunchray.engine.progress import AgentProgress, Snapshot
from trunchray.engine.spending import Spending

REPORT = made_report({"a": {"e": ["p", "f", "-"]}, "b": {"e": ["-", "-", "-"]}})
SNAPSHOT = Snapshot(
    run_id="r",
    agents=(
        AgentProgress(name="a", planned=3, counts=Counts(passed=1, failed=1), spent_usd=0.0082, spent_tokens=900),
        AgentProgress(name="b", planned=3),
    ),
)


def estimate(name: str, *, rows: int = 0) -> ModelEstimate:
    """Of three trials, for 500 tokens or 0.001 dollars each, and at most eight times as much."""
    tokens, usd = Range(low=3, expected=1500, high=12_000), Range(low=0, expected=0.003, high=0.024)
    basis = "rows" if rows else "sizes"
    return ModelEstimate(name=name, trials=3, tokens=tokens, usd=usd, basis=basis, rows=rows)


@pytest.mark.parametrize(
    ("budget", "spent", "costs"),
    [
        (Budget(usd=0.009), "spent $0.0082 of $0.0090", ("$0.0010", "$0.0080")),
        (Budget(tokens=1000), "spent 900 of 1,000 tokens", ("500 tokens", "4,000 tokens")),
    ],
)
def test_a_model_that_was_never_begun_is_explained(budget: Budget, spent: str, costs: tuple[str, str]):
    """Money that is left is too little for a trial of a model that may write much; its limit is what to change."""
    said = budget_reached(REPORT, SNAPSHOT, Spending(budget), [estimate("a", rows=2), estimate("b")])
    assert said == (
        f"budget reached: {spent}; 2 of 6 trials are done, 4 are owed; the same command with a larger budget "
        f"continues, and pays for nothing twice; no trial of 'b' was begun: one was expected to cost {costs[0]}, and "
        f"may cost {costs[1]}; a smaller limits.max_output_tokens, which makes a new run, lets more of them fit"
    )
    assert "no trial of" not in budget_reached(REPORT, SNAPSHOT, Spending(budget), [estimate("a", rows=2)])


def test_a_model_of_which_one_trial_has_been_run_was_begun():
    """Its cost is a guess as yet; but that none was begun is not true."""
    agents = (SNAPSHOT.agents[0], AgentProgress(name="b", planned=3, counts=Counts(passed=1)))
    snapshot = SNAPSHOT.model_copy(update={"agents": agents})
    said = budget_reached(REPORT, snapshot, Spending(Budget(usd=0.009)), [estimate("a", rows=2), estimate("b")])
    assert "no trial of" not in said

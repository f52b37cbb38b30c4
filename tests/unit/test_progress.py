from __future__ import annotations

import pytest

from trunchray.core.agent import Mock, ModelAgent
from trunchray.core.budget import Spend
from trunchray.core.plan import make_plan
from trunchray.core.receipt import Counts, InHand, Mark, Marks, Receipt, owes
from trunchray.core.run import Aim, RunSpec
from trunchray.engine.progress import Progress

AGENTS = (ModelAgent(name="a", model="mock/echo"), ModelAgent(name="b", model="mock/echo", mock=Mock(seed=1)))
SPEC = RunSpec(run_id="r", title="T", release="x", release_digest="d", agents=AGENTS, shard_size=5)
PLAN = make_plan(SPEC, [(f"c{n}", "e") for n in range(12)])


def receipt(shard: str, *, missing: int = 0, **counts: int) -> Receipt:
    return Receipt(shard=shard, attempt=1, parts=(), keys_digest="", counts=Counts(**counts), missing=missing)


def test_committed_rows_and_rows_in_hand_add_up():
    """Each shard is counted once: from its receipt when it is committed, else from its worker."""
    first, second, *_ = [shard.id for shard in PLAN.shards if shard.agent.name == "a"]
    progress = Progress(PLAN, {first: receipt(first, passed=4, error=1, tokens=50)})
    snapshot = progress.snapshot({second: InHand(Counts(failed=2), 3)})
    a, b = snapshot.agents
    assert (a.planned, a.counts, a.in_flight) == (12, Counts(passed=4, failed=2, error=1, tokens=50), 3)
    assert (b.planned, b.counts, b.in_flight) == (12, Counts(), 0)
    assert (snapshot.planned, snapshot.rows, snapshot.resumed) == (24, 7, 5)
    progress.settle(receipt(second, failed=5))
    assert progress.snapshot({}).agents[0].counts.rows == 10


def test_rows_of_a_shard_that_ended_early_count_until_it_is_in_work_again():
    """They are committed; from then on the worker counts them, and at last the whole shard's receipt does."""
    shard = PLAN.shards[0].id
    progress = Progress(PLAN, {shard: receipt(shard, passed=3, cost=30, missing=2)})
    assert (progress.counted, progress.held, progress.snapshot({}).rows) == (3, 0, 3)
    assert progress.snapshot({shard: InHand(Counts(passed=4, cost=40), 1)}).spent.cost == 40
    progress.settle(receipt(shard, passed=5, cost=50))
    assert (progress.counted, progress.snapshot({}).rows, progress.snapshot({}).spent.cost) == (5, 5, 50)


def test_rows_known_to_be_stored_are_held_until_their_shard_is_in_work():
    """A command that goes on from them shows them from the start, and each shard is still counted once."""
    first, second, *_ = [shard.id for shard in PLAN.shards if shard.agent.name == "a"]
    stored = {first: Counts(passed=2, cost=20), second: Counts(passed=1), "stranger": Counts(passed=9)}
    progress = Progress(PLAN, {second: receipt(second, passed=5, cost=50)}, stored)
    assert (progress.counted, progress.held) == (5, 2)
    assert progress.snapshot({}).spent.cost == 70
    assert progress.snapshot({first: InHand(Counts(passed=3, cost=30), 1)}).spent.cost == 80


def test_commits_of_another_plan_are_left_out():
    """A folder may hold shards that this plan does not have; they are not this run's rows."""
    progress = Progress(PLAN, {"stranger": receipt("stranger", passed=9)})
    assert progress.snapshot({}).rows == 0


def test_counts_of_rows():
    """Rows are counted by outcome, and their tokens added."""
    marks = [Mark("passed", 3, cost=5), Mark("error", 0), Mark("error", 0, retryable=True), Mark("passed", 4, cost=6)]
    assert Counts.of(marks) == Counts(passed=2, error=2, tokens=7, retryable=1, cost=11)
    assert (Counts(passed=1, tokens=2) + Counts(failed=3)).rows == 4


def test_answers_that_nobody_grades_are_no_errors():
    """They are rows without a verdict, of which nothing is mended by asking or grading again."""
    mark = Mark("error", 3, not_graded=True)
    counts = Counts.of([mark, Mark("error", 1)])
    assert (counts.not_graded, counts.error, counts.rows, counts.tokens) == (1, 1, 2, 4)


def test_replaced_rows_were_paid_for_too():
    """A row that was asked again counts as the newer one says, and costs what both did."""
    marks = Marks()
    marks.put("k", Mark("error", 3, retryable=True, cost=30))
    marks.put("k", Mark("passed", 4, cost=40))
    counts = Counts.of(marks.newest.values())
    whole = Receipt(shard="s", attempt=1, parts=(), keys_digest="", counts=counts, replaced=marks.replaced)
    assert counts == Counts(passed=1, tokens=4, cost=40)
    assert Receipt.model_validate_json(whole.model_dump_json()).spent == Spend(70, 7)


def test_receipts_without_costs_can_be_read():
    """A commit of a version that did not write costs down cost nothing, as far as it says."""
    old = {"shard": "s", "attempt": 1, "parts": [], "keys_digest": "", "counts": {"passed": 2, "tokens": 9}}
    assert Receipt.model_validate(old).spent == Spend(0, 9)


@pytest.mark.parametrize(
    ("newest", "aims"),
    [
        (None, {"run"}),
        (Mark("passed", 1), set[str]()),
        (Mark("error", 0), set[str]()),
        (Mark("error", 0, not_graded=True), set[str]()),
        (Mark("error", 0, retryable=True), {"run", "retry"}),
        (Mark("error", 1, gradable=True), {"regrade"}),
        (Mark("error", 1, retryable=True, gradable=True), {"run", "retry", "regrade"}),
    ],
)
def test_what_is_done_again(newest: Mark | None, aims: set[str]):
    """A verdict stays; which errors are redone, and whether missing trials are run, is the aim of the command."""
    every: tuple[Aim, ...] = ("run", "retry", "regrade")
    assert {aim for aim in every if owes(aim, newest)} == aims


def test_errors_before_are_counted():
    """Each row that ended in an error counts, also when a later one did not."""
    marks = Marks()
    for mark in (Mark("error", 0, retryable=True), Mark("error", 0, retryable=True), Mark("passed", 4)):
        marks.put("k", mark)
    assert (marks.errors["k"], marks.errors["other"]) == (2, 0)

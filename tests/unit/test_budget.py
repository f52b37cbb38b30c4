"""Budgets: what is counted, who is stopped, and how close a run comes."""

from __future__ import annotations

import random

import pytest
from pydantic import ValidationError

from trunchray.core.agent import ModelAgent
from trunchray.core.budget import Budget, Purse, Spend, total
from trunchray.engine.clocked import ClockedGovernor
from trunchray.engine.demand import Demand
from trunchray.engine.governor import Governor


def test_costs_are_whole_nanodollars() -> None:
    """A token at 0.15 dollars per million counts as 150, and sums do not depend on their order."""
    assert Spend.of(0.15e-6, 1) == Spend(150, 1)
    assert Spend.of(None, 7) == Spend(0, 7)
    costs = [Spend.of(random.Random(seed).random() / 1e5, seed) for seed in range(1000)]
    assert total(costs) == total(reversed(costs))


@pytest.mark.parametrize("budget", [{"usd": 0}, {"usd": -1}, {"usd": float("inf")}, {"usd": 1e300}, {"tokens": 0}])
def test_a_budget_is_positive(budget: dict[str, float]) -> None:
    """A budget of nothing, without end, or of more than can be counted, is a mistake."""
    with pytest.raises(ValidationError):
        Budget.model_validate(budget)


def test_stored_rows_count_against_the_budget() -> None:
    """What earlier commands paid is spent."""
    purse = Purse(Budget(tokens=100), {}, {"a": Spend(0, 95)}, {"a": Spend(0, 10)})
    assert purse.allow("w", "a", 5) == 0
    assert purse.exhausted() == {"a": "budget"}


def test_models_share_the_whole_budget_and_keep_to_their_own() -> None:
    """Whoever asks first takes from the common budget; a budget of one model bounds that one alone."""
    purse = Purse(Budget(tokens=1000), {"a": Budget(tokens=200)}, {}, {"a": Spend(0, 10), "b": Spend(0, 10)})
    first, second = purse.allow("w", "a", 100), purse.allow("w", "b", 100)
    assert 0 < first <= 16
    assert 0 < second <= 16
    purse.report("w", "a", spent=Spend(0, 200), begun=16, ended=16)
    assert purse.allow("w", "a", 1) == 0
    assert purse.exhausted() == {"a": "budget"}
    assert purse.allow("w", "b", 100) == 16


def test_a_budget_in_dollars_leaves_free_models_alone() -> None:
    """A model that costs nothing, or whose price is unknown, goes on when the dollars are spent."""
    purse = Purse(Budget(usd=1), {}, {}, {"paid": Spend.of(0.5, 10), "free": Spend(0, 10)})
    purse.report("w", "paid", spent=Spend.of(1.2, 20), begun=2, ended=2)
    assert purse.allow("w", "paid", 1) == 0
    assert purse.allow("w", "free", 10) == 10
    assert purse.exhausted() == {"paid": "budget"}


def test_what_a_dead_worker_had_in_flight_counts_as_paid_until_it_answers_again() -> None:
    """The provider will have answered it, and whatever else the worker had been allowed to begin since it was heard."""
    purse = Purse(Budget(tokens=10_000), {}, {}, {"a": Spend(0, 10)})
    assert purse.allow("w", "a", 16) == 16
    purse.report("w", "a", spent=Spend(0, 20), begun=7, ended=2)
    purse.gone("w")
    assert purse.spent() == {"a": Spend(0, 160)}
    purse.gone("w")
    assert purse.spent() == {"a": Spend(0, 160)}
    purse.report("w", "a", spent=Spend(0, 70), begun=7, ended=7)
    assert purse.spent() == {"a": Spend(0, 70)}


def test_an_expectation_that_was_measured_is_trusted():
    """A command that goes on from many rows begins with as many trials as its budget carries."""
    guessed, measured = (Purse(Budget(tokens=10_000), {}, {}, {"a": Spend(0, 10)}, measured={"a": n}) for n in (0, 99))
    assert (guessed.allow("w", "a", 128), measured.allow("w", "a", 128)) == (16, 128)


def test_a_guess_that_may_be_far_off_does_not_spend_a_small_budget():
    """Before one trial has ended, each of several is reserved at what it could cost; a single one may always begin."""
    purse = Purse(Budget(tokens=100), {}, {}, {"a": Spend(0, 10)}, most={"a": Spend(0, 80)})
    assert purse.allow("w", "a", 50) == 1
    purse.report("w", "a", spent=Spend(0, 10), begun=1, ended=1)
    assert purse.allow("w", "a", 50) == 4


def test_a_model_that_goes_first_does_not_keep_another_from_beginning():
    """Where a budget is small beside what a trial could cost, models are tried one after the other, then share it."""
    real = Spend(0, 10)
    purse = Purse(
        Budget(tokens=2000), {}, {}, dict.fromkeys("ab", Spend(0, 300)), most=dict.fromkeys("ab", Spend(0, 2000))
    )
    begun, ended = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)
    first: list[int] = []
    for _ in range(100):
        for name in "ab":
            purse.report("w", name, spent=real.times(ended[name]), begun=begun[name], ended=ended[name])
            begun[name] += purse.allow("w", name, 8)
        first.append(sum(begun.values()))
        ended = dict(begun)
    assert first[0] == 1
    assert min(begun.values()) > 80
    assert 190 < sum(begun.values()) <= 200
    assert purse.exhausted() == dict.fromkeys("ab", "budget")


def test_a_model_that_costs_nothing_does_not_count_as_one_that_is_tried():
    """It has no cost to be guessed, however many of its trials are under way."""
    guesses = {"free": Spend(0, 0), "b": Spend(0, 300)}
    purse = Purse(Budget(tokens=2000), {}, {}, guesses, most={"free": Spend(0, 0), "b": Spend(0, 2000)})
    assert purse.allow("w", "free", 8) == 8
    purse.report("w", "free", spent=Spend(0, 0), begun=8, ended=0)
    assert purse.allow("w", "b", 8) == 1


def test_grants_that_one_worker_does_not_need_are_free_for_others() -> None:
    """A worker without trials to begin gives back what it was granted."""
    purse = Purse(Budget(tokens=1000), {}, {}, {"a": Spend(0, 10)})
    assert purse.allow("idle", "a", 16) == 16
    assert purse.allow("busy", "a", 16) == 0
    assert purse.allow("idle", "a", 0) == 0
    assert purse.allow("busy", "a", 16) == 16


@pytest.mark.parametrize("seed", range(5))
def test_a_run_of_very_different_trials_comes_close_to_its_budget(seed: int) -> None:
    """With costs that vary as much as their mean and 64 in flight, the budget is used and passed by at most 2 %."""
    draw = random.Random(seed)
    budget, mean = 1_000_000, 1000
    purse = Purse(Budget(tokens=budget), {}, {}, {"a": Spend(0, mean * 3)})
    spent = begun = ended = 0
    flight: list[int] = []
    while True:
        purse.report("w", "a", spent=Spend(0, spent), begun=begun, ended=ended)
        grant = purse.allow("w", "a", 64 - len(flight))
        begun += grant
        flight += [round(draw.expovariate(1 / mean)) for _ in range(grant)]
        if not flight:
            break
        for _ in range(min(len(flight), 4)):
            spent += flight.pop(draw.randrange(len(flight)))
            ended += 1
    assert purse.exhausted() == {"a": "budget"}
    assert 0.97 * budget < spent < 1.02 * budget


def test_a_purse_recalls_what_another_one_knew() -> None:
    """Of workers that it has not heard of: what they had in flight counts as spent, until they do report."""
    first, second = (Purse(Budget(tokens=1000), {}, {"a": Spend(0, 100)}, {"a": Spend(0, 10)}) for _ in range(2))
    first.report("dead", "a", spent=Spend(0, 50), begun=5, ended=5)
    first.report("alive", "a", spent=Spend(0, 20), begun=4, ended=2)
    second.report("alive", "a", spent=Spend(0, 30), begun=4, ended=3)
    second.recall(first.accounts())
    assert second.spent() == {"a": Spend(0, 180)}
    third = Purse(Budget(tokens=1000), {}, {"a": Spend(0, 100)}, {"a": Spend(0, 10)})
    third.recall(first.accounts())
    assert third.spent() == {"a": Spend(0, 190)}
    third.report("alive", "a", spent=Spend(0, 40), begun=4, ended=4)
    assert third.spent() == {"a": Spend(0, 190)}


async def test_a_governor_that_is_started_again_waits_for_what_was_known() -> None:
    """Until the driver has told it, nothing begins; then, what workers spent that are gone is spent."""
    agents = [ModelAgent(name="a", model="local/a", base_url="http://127.0.0.1:1/v1")]

    def start() -> ClockedGovernor:
        purse = Purse(Budget(tokens=60), {}, {}, {"a": Spend(0, 10)}, most={"a": Spend(0, 10)})
        return ClockedGovernor(agents, purse, resumable=True, clock=lambda: 0)

    spent = Demand(spent=Spend(0, 50), trials_begun=5, trials_ended=5, trials_waiting=9)
    first = start()
    assert await first.exchange("dead", {"a": spent}) == {}
    await first.resume({})
    assert (await first.exchange("dead", {"a": spent}))["a"].trials == 1
    _, known = await first.resume({})
    second = start()
    assert await second.exchange("w", {"a": Demand(trials_waiting=9)}) == {}
    await second.resume(known)
    assert (await second.exchange("w", {"a": Demand(trials_waiting=9)}))["a"].trials == 1


def test_a_model_whose_answers_are_often_not_counted_is_left_for_a_reason_with_figures() -> None:
    """Three answers without a count are too many for a budget once they are more than one in fifty."""
    agents = [ModelAgent(name="a", model="local/a", base_url="http://127.0.0.1:1/v1")]
    governor = Governor(agents, Purse(Budget(tokens=10_000), {}, {}, {"a": Spend(0, 10)}))

    def told(answers: int, silent: int) -> str | None:
        demand = Demand(succeeded=answers, uncounted=silent, trials_begun=answers, trials_ended=answers)
        return governor.exchange("w", {"a": demand}, 0)["a"].closed

    assert told(10, 2) is None
    assert told(150, 3) is None
    assert told(160, 4) == "uncounted"
    why = "4 of 160 answers did not say how many tokens they took, so no budget can be kept"
    assert governor.snapshot(0)["a"].why == why

"""Runs that may only cost so much, on every pool."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import Onlooker, drive, question
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import Mock, ModelAgent, Price
from trunchray.core.budget import Budget, Spend, total
from trunchray.core.plan import make_plan
from trunchray.engine.launch import estimate_cost
from trunchray.engine.spending import Spending, read_paid
from trunchray.errors import UsageError

CASES = 240
EACH = 10e-6
"""US dollars that a trial costs at one dollar for a million tokens: the provider counts ten of them."""


@pytest.fixture
def release(tmp_path: Path) -> StoredRelease:
    return make_release(tmp_path, CASES)


def model(provider: CountingProvider, name: str = "m", **fields: Any) -> ModelAgent:
    """Its name is part of what is asked, so that two models of one provider differ."""
    asked: dict[str, Any] = {"base_url": provider.base_url, "params": {"user": name}}
    return ModelAgent(name=name, model="local/m", price=Price(input=1, output=1), **(asked | fields))


def paid(folder: Path, agents: list[ModelAgent], release: StoredRelease) -> Spend:
    """What the stored rows of the run have cost."""
    plan, run = make_plan(question(release, agents), release.cases().index), RunFolder(str(folder / "test"))
    return total(of.spent for of in read_paid(plan, run, run.commits()).values())


def test_a_run_stops_at_its_budget_and_goes_on_with_a_larger_one(pool: str, release: StoredRelease, tmp_path: Path):
    """Half a budget runs half of the trials, at most 2 % more, and not one of them is asked again."""
    budget = Budget(usd=CASES / 2 * EACH)
    with CountingProvider(latency=0.01) as provider:
        agents, seen = [model(provider)], Onlooker()
        stopped = drive(
            question(release, agents), release, tmp_path, pool=pool, spending=Spending(budget), observer=seen
        )
        assert not stopped.complete
        assert {one.not_run_reason for one in stopped.models} == {"budget"}
        assert 0.9 * CASES / 2 < provider.asked.total() <= 1.02 * CASES / 2
        assert CASES - stopped.not_run == provider.asked.total()
        assert paid(tmp_path, agents, release) == Spend(provider.asked.total() * 10_000, provider.asked.total() * 10)
        assert seen.snapshots[-1].spent == paid(tmp_path, agents, release)
        assert seen.snapshots[-1].rows == provider.asked.total()

        once_more = Onlooker()
        drive(question(release, agents), release, tmp_path, spending=Spending(budget), observer=once_more)
        assert provider.asked.total() <= 1.02 * CASES / 2
        assert (once_more.snapshots[-1].rows, once_more.snapshots[-1].spent.tokens) == (
            provider.asked.total(),
            provider.asked.total() * 10,
        )

        larger = Spending(Budget(usd=10))
        assert drive(question(release, agents), release, tmp_path, spending=larger).complete
        assert set(Counter(provider.asked.values())) == {1}
        assert provider.asked.total() == CASES


def test_tokens_are_a_budget_too(release: StoredRelease, tmp_path: Path):
    """They can be counted of any model, and bound a run in the same way."""
    with CountingProvider(latency=0.01) as provider:
        spec = question(release, [model(provider).model_copy(update={"price": None})])
        stopped = drive(spec, release, tmp_path, spending=Spending(Budget(tokens=CASES * 5)))
        assert {one.not_run_reason for one in stopped.models} == {"budget"}
        assert 0.9 * CASES / 2 < provider.asked.total() <= 1.02 * CASES / 2
        assert drive(spec, release, tmp_path, spending=Spending(Budget(tokens=10**6))).complete
        assert set(provider.asked.values()) == {1}


def test_a_model_has_a_budget_of_its_own(release: StoredRelease, tmp_path: Path):
    """When it is spent, the other models go on to their ends, and the report says why which trials are missing."""
    with CountingProvider(latency=0.005) as provider:
        agents = [model(provider, "dear"), ModelAgent(name="free", model="mock/echo", mock=Mock())]
        spending = Spending(Budget(tokens=10**7), {"dear": Budget(usd=100 * EACH)})
        report = drive(question(release, agents), release, tmp_path, spending=spending)
        assert 90 < provider.asked.total() <= 102
        dear, free = report.models
        assert (dear.not_run_reason, free.not_run_reason, free.passed) == ("budget", None, CASES)


def test_a_pilot_runs_so_many_trials_of_each_model(pool: str, release: StoredRelease, tmp_path: Path):
    """Its rows are the run's own: the rest is estimated from them, and nothing is asked again."""
    with CountingProvider(latency=0.005) as provider:
        agents = [model(provider), model(provider, "n")]
        spec = question(release, agents)
        before = estimate_cost(spec, release, f"{tmp_path}/test")
        assert {(one.basis, one.trials) for one in before} == {("sizes", CASES)}
        report = drive(spec, release, tmp_path, pool=pool, spending=Spending(pilot=20))
        assert {one.not_run_reason for one in report.models} == {"pilot"}
        assert provider.asked.total() == 40
        assert [one.planned - one.not_run for one in report.models] == [20, 20]
        for one in estimate_cost(spec, release, f"{tmp_path}/test"):
            assert (one.basis, one.rows, one.trials) == ("rows", 20, CASES - 20)
            assert one.usd is not None
            assert one.usd.low == pytest.approx(one.usd.high) == pytest.approx((CASES - 20) * EACH)
        drive(spec, release, tmp_path, spending=Spending(pilot=20))
        assert provider.asked.total() == 40
        assert drive(spec, release, tmp_path).complete
        assert set(provider.asked.values()) == {2}


def test_rows_that_cost_nothing_do_not_tell_what_others_will(release: StoredRelease, tmp_path: Path):
    """A run that goes on from cached answers stays within its budget when the rest has to be paid."""
    with CountingProvider() as provider:
        spec, cache = question(release, [model(provider)]), str(tmp_path / "cache")
        drive(spec, release, tmp_path / "first", cache=cache, spending=Spending(pilot=40))
        assert not drive(spec, release, tmp_path, cache=cache, spending=Spending(pilot=40)).complete
        assert provider.asked.total() == 40
        drive(spec, release, tmp_path, spending=Spending(Budget(usd=100 * EACH)))
        assert 90 < provider.asked.total() - 40 <= 102


def test_no_budget_bounds_what_is_not_counted(release: StoredRelease, tmp_path: Path):
    """A model whose provider does not say what answers took is left soon, with a warning, unless that is allowed."""
    with CountingProvider() as provider:
        provider.counts = False
        spec, seen = question(release, [model(provider)]), Onlooker()
        for spending in (Spending(Budget(usd=1)), Spending(Budget(tokens=100_000))):
            report = drive(spec, release, tmp_path, spending=spending, observer=seen)
            assert report.models[0].not_run_reason == "uncounted"
        assert provider.asked.total() < CASES / 2
        assert all("answers did not say how many tokens they took" in warning for warning in seen.warnings)
        allowed = Spending(Budget(usd=1), allow_unpriced=True)
        assert drive(spec, release, tmp_path, spending=allowed).complete
        assert set(provider.asked.values()) == {1}


def test_dollars_cannot_bound_what_has_no_price(release: StoredRelease, tmp_path: Path):
    """A budget that could not be kept is refused before anything is written; tokens can be counted of any model."""
    agents = [ModelAgent(name="free", model="mock/echo", mock=Mock())]
    spec = question(release, agents)
    for spending in (Spending(Budget(usd=1)), Spending(each={"free": Budget(usd=1)})):
        with pytest.raises(UsageError, match=r"'free'.*price"):
            drive(spec, release, tmp_path, spending=spending)
    assert not (tmp_path / "test").exists()
    assert drive(spec, release, tmp_path, spending=Spending(Budget(usd=1), allow_unpriced=True)).complete

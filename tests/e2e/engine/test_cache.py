"""Runs that share a cache of answers, on every pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import Onlooker, drive, question, rows, unmeasured
from trunchray.adapters.releases import StoredRelease
from trunchray.core.agent import Limits, Mock, ModelAgent, Pacing, Price, ScriptedCall, ScriptedReply
from trunchray.core.budget import Budget
from trunchray.core.report import Report
from trunchray.engine.spending import Spending

CASES = 24


@pytest.fixture
def release(tmp_path: Path) -> StoredRelease:
    return make_release(tmp_path, CASES)


def model(provider: CountingProvider, **fields: Any) -> ModelAgent:
    return ModelAgent(
        name="m", model="local/m", base_url=provider.base_url, price=Price(input=1e6, output=1e6), **fields
    )


def ask(agent: ModelAgent, release: StoredRelease, folder: Path, name: str, pool: str = "local", **how: Any) -> Report:
    attempts = how.pop("attempts", 1)
    spec = question(release, [agent], run_id=name, attempts=attempts)
    return drive(spec, release, folder, pool=pool, cache=str(folder / "cache"), **how)


def test_another_run_asks_nothing_again(pool: str, release: StoredRelease, tmp_path: Path):
    """What one run was answered, any run that asks the same gets without a request, at no cost, and says so."""
    with CountingProvider() as provider:
        first = ask(model(provider), release, tmp_path, "first")
        assert (provider.asked.total(), first.models[0].cache_hits) == (CASES, 0)
        second = ask(model(provider), release, tmp_path, "second", pool)
        assert provider.asked.total() == CASES
    (was,), (now,) = first.models, second.models
    assert (was.cost_usd, now.cost_usd) == (CASES * 10, 0)
    assert (now.cache_hits, now.saved_tokens) == (CASES, CASES * 10)
    assert (now.passed, now.usage) == (was.passed, was.usage)
    assert {(row["cache_hits"], row["saved_tokens"], row["retries"]) for row in rows(tmp_path / "second")} == {
        (1, 10, 0)
    }
    assert f"cache hits: {CASES}, which saved {CASES * 10} tokens" in (
        tmp_path / "second" / "report" / "report.md"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize("budget", [Budget(usd=100), Budget(tokens=100)], ids=["usd", "tokens"])
def test_what_is_found_is_not_spent(pool: str, budget: Budget, release: StoredRelease, tmp_path: Path):
    """A budget for a few trials is enough for a run whose answers are all there, and nothing of it goes."""
    limits = Limits(max_output_tokens=10)
    with CountingProvider() as provider:
        ask(model(provider, limits=limits), release, tmp_path, "first")
        spending = Spending(budget)
        second = ask(model(provider, limits=limits), release, tmp_path, "second", pool, spending=spending)
        assert provider.asked.total() == CASES
        assert (second.complete, second.models[0].cost_usd) == (True, 0)
        other = model(provider, limits=limits, params={"seed": 1})
        assert not ask(other, release, tmp_path, "third", spending=spending).complete
        assert CASES < provider.asked.total() <= CASES + 10, "the same budget pays for ten trials of ten tokens"


def test_the_cache_does_not_change_what_is_counted(pool: str, release: StoredRelease, tmp_path: Path):
    """Rows are the same whether their answers were bought or found, but for cost and for what tells them apart."""
    agent = ModelAgent(name="m", model="mock/echo", mock=Mock())
    ask(agent, release, tmp_path, "first")
    ask(agent, release, tmp_path, "second", pool)

    def compared(name: str) -> list[dict[str, Any]]:
        different = ("cost_usd", "steps")
        return [{k: v for k, v in row.items() if k not in different} for row in unmeasured(tmp_path / name)]

    assert compared("first") == compared("second")
    assert sum(row["cache_hits"] for row in rows(tmp_path / "second")) == CASES


def test_another_question_is_asked(release: StoredRelease, tmp_path: Path):
    """Another attempt, parameter or output limit is another question; only what is new is asked."""
    with CountingProvider() as provider:
        ask(model(provider), release, tmp_path, "first")
        ask(model(provider), release, tmp_path, "attempts", attempts=2)
        assert provider.asked.total() == 2 * CASES
        ask(model(provider, params={"temperature": 1}), release, tmp_path, "parameter")
        assert provider.asked.total() == 3 * CASES
        ask(model(provider, limits=Limits(max_output_tokens=9)), release, tmp_path, "limit")
        assert provider.asked.total() == 4 * CASES


def test_every_call_of_a_trial_is_kept(pool: str, release: StoredRelease, tmp_path: Path):
    """A conversation with tool calls is found step by step, and goes as it went."""
    script = (ScriptedReply(tool_calls=(ScriptedCall(name="nope"),)), ScriptedReply(text="done"))
    agent = ModelAgent(name="m", model="mock/script", mock=Mock(script=script))
    ask(agent, release, tmp_path, "first")
    second = ask(agent, release, tmp_path, "second", pool)
    assert second.models[0].cache_hits == 2 * CASES
    assert {row["output"] for row in rows(tmp_path / "second")} == {"done"}


def test_failures_are_not_kept(pool: str, release: StoredRelease, tmp_path: Path):
    """An error, a refusal by a filter or a broken reply is asked again, by the same run and by others."""
    with CountingProvider() as provider:
        provider.failing = {"prompt 1": 503, "prompt 2": 401, "prompt 3": 400}
        agent = model(provider, pacing=Pacing(max_retries=0))
        first = ask(agent, release, tmp_path, "first", pool)
        assert (first.error, provider.asked.total()) == (3, CASES)
        provider.failing = {}
        second = ask(agent, release, tmp_path, "second")
        assert (second.error, second.models[0].cache_hits, provider.asked.total()) == (0, CASES - 3, CASES + 3)


def test_damaged_entries_are_asked_again(release: StoredRelease, tmp_path: Path):
    """Whatever stands in an entry's place, the answer is the model's; and it is stored anew."""
    with CountingProvider() as provider:
        ask(model(provider), release, tmp_path, "first")
        entries = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
        assert len(entries) == CASES
        entries[0].write_bytes(b"")
        entries[1].write_bytes(entries[2].read_bytes())
        entries[3].write_bytes(entries[3].read_bytes().replace(b"prompt", b"prOmpt"))
        for name, hits in (("second", CASES - 3), ("third", CASES)):
            onlooker = Onlooker()
            report = ask(model(provider), release, tmp_path, name, observer=onlooker)
            assert (report.models[0].cache_hits, report.passed, onlooker.warnings) == (hits, CASES, [])


def test_a_cache_that_fails_costs_only_money(pool: str, release: StoredRelease, tmp_path: Path):
    """A store that refuses is as good as none: one warning, and every trial is run."""
    (tmp_path / "cache").write_bytes(b"in the way")
    onlooker = Onlooker()
    with CountingProvider() as provider:
        report = ask(model(provider), release, tmp_path, "first", pool, observer=onlooker)
        assert provider.asked.total() == CASES
    assert (report.passed, report.models[0].cache_hits) == (CASES, 0)
    assert onlooker.warnings == [
        f"the cache {tmp_path / 'cache'} cannot be used (Not a directory); models are asked instead"
    ]

"""Limits that all workers keep together, on every pool."""

from __future__ import annotations

from pathlib import Path

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import Onlooker, drive, question
from trunchray.adapters.models.rate_limit import Limiter, RateLimit
from trunchray.core.agent import ModelAgent, Quota
from trunchray.engine.seating import Seating


def served(name: str, provider: CountingProvider, **changes: object) -> ModelAgent:
    return ModelAgent.model_validate({"name": name, "model": f"local/{name}", "base_url": provider.base_url, **changes})


def test_models_share_a_quota(pool: str, tmp_path: Path):
    """Two models of one quota never have more requests in flight together than it allows, nor more in a minute."""
    release = make_release(tmp_path, 40)
    with CountingProvider(latency=0.02) as provider:
        provider.limiter = Limiter(RateLimit(3000))
        quota = Quota(name="q", requests_per_minute=3000, max_in_flight=6)
        agents = [served(name, provider, quota=quota, params={"seed": n}) for n, name in enumerate("ab")]
        onlooker = Onlooker()
        spec, two = question(release, agents), Seating(workers=2)
        assert drive(spec, release, tmp_path, pool=pool, seating=two, observer=onlooker).passed == 80
        assert provider.most_at_once <= 6
        assert (provider.limiter.taken, provider.limiter.refused) == (80, 0)
    standing = [agent.standing for snapshot in onlooker.snapshots for agent in snapshot.agents if agent.standing]
    assert {one.permits for one in standing} == {6}
    assert {one.rate for one in standing} == {50}


def test_a_model_whose_key_is_refused_is_left_alone(pool: str, tmp_path: Path):
    """Its other trials are not asked and stay owed, the other model is finished; once mended, nothing is paid twice."""
    release = make_release(tmp_path, 200)
    with CountingProvider() as barred, CountingProvider() as provider:
        barred.failing = {f"prompt {number}": 401 for number in range(200)}
        agents = [served("barred", barred), served("fine", provider)]
        onlooker = Onlooker()
        report = drive(question(release, agents), release, tmp_path, pool=pool, observer=onlooker)
        assert {model.name: model.not_run_reason for model in report.models} == {
            "barred": "authentication",
            "fine": None,
        }
        assert barred.asked.total() < 150
        assert report.models[1].passed == 200
        assert any("'barred' is not asked any more: authentication" in warning for warning in onlooker.warnings)
        barred.failing = {}
        assert drive(question(release, agents), release, tmp_path).passed == 400
        assert (barred.answered.total(), provider.answered.total()) == (200, 200)

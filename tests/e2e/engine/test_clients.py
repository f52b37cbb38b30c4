"""Runs whose models are asked through litellm."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.provider import CountingProvider
from support.releases import make_release
from support.runs import drive, question, rows
from trunchray.core.agent import ModelAgent, Price


def test_a_run_through_litellm(pool: str, tmp_path: Path):
    """Rows say the same as those of the direct client: answers, tokens, cost, and failures in our own words."""
    release = make_release(tmp_path, 8)
    found: dict[str, list[dict[str, object]]] = {}
    for transport, place in (("openai", "local"), ("litellm", pool)):
        with CountingProvider() as provider:
            provider.failing["prompt 3"] = 400
            agent = ModelAgent.model_validate(
                {"name": "m", "model": "vllm/m", "base_url": provider.base_url, "transport": transport}
                | {"price": Price(input=1, output=2)}
            )
            drive(question(release, [agent]), release, tmp_path / transport, pool=place)
            assert provider.asked == {f"prompt {number}": 1 for number in range(8)}
        names = ("case_id", "outcome", "output", "finish_reason", "failure_type", "usage_input", "cost_usd", "model")
        table = rows(tmp_path / transport / "test")
        found[transport] = [{name: row.get(name) for name in names} for row in table]
        failed = [row for row in table if row["outcome"] == "error"]
        assert len(failed) == 1
        assert "litellm" not in str(failed[0]).lower()
        costs = [row["cost_usd"] for row in table if row["outcome"] != "error"]
        assert costs == [pytest.approx((7 * 1 + 3 * 2) / 1e6)] * 7
    assert found["litellm"] == found["openai"]

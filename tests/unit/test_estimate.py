"""What a run will cost, before it does."""

from __future__ import annotations

import random

import pytest

from trunchray.core.agent import Limits, ModelAgent, Price
from trunchray.core.budget import Spend
from trunchray.core.case import CaseInput
from trunchray.core.estimate import Size, from_rows, from_sizes, one_trial, size, together

PRICED = ModelAgent(
    name="m", model="openai/m", price=Price(input=1, output=10), limits=Limits(max_output_tokens=800, max_steps=3)
)
UNPRICED = PRICED.model_copy(update={"price": None})


def test_the_size_of_a_case_is_all_that_is_sent_first():
    """Prompts and the schemas of its tools, in bytes of UTF-8."""
    assert size(CaseInput(prompt="abcd"), []) == Size(4, 1, tools=False)
    assert size(CaseInput(prompt="日本", system_prompt="be brief"), [b"12345"]) == Size(19, 2, tools=True)


def test_an_estimate_from_sizes():
    """A token is about four bytes; an answer an eighth of what is allowed, at most all of it."""
    found = from_sizes(PRICED, [Size(400, 1, tools=False), Size(800, 1, tools=False)], trials=10)
    assert (found.basis, found.trials, found.rows) == ("sizes", 10, 0)
    assert found.tokens.expected == 10 * (150 + 4 + 100)
    assert found.tokens.low == pytest.approx(10 * (120 + 4 + 800 / 128))
    assert found.tokens.high == pytest.approx(10 * (200 + 4 + 800))
    assert found.usd is not None
    assert found.usd.expected == pytest.approx(10 * (154 * 1 + 100 * 10) / 1e6)
    assert one_trial(found) == Spend(1_154_000, 254)
    assert one_trial(found, "high") == Spend(8_204_000, 1004)


def test_tools_are_asked_in_several_calls():
    """Each call reads again what was said before it, within the limits on steps and on tool calls."""
    sizes = [Size(400, 1, tools=True)]
    assert from_sizes(PRICED, sizes, trials=1).tokens.expected == (104 + 100) + (104 + 100 + 100)
    most = from_sizes(PRICED, sizes, trials=1).tokens.high
    assert most == pytest.approx(3 * (400 / 3 + 4) + 800 * 3 + 3 * 800)
    never = PRICED.model_copy(update={"limits": Limits(max_output_tokens=800, max_tool_calls=0)})
    assert from_sizes(never, sizes, trials=1).tokens.expected == 104 + 100


def test_an_answer_that_is_known():
    """A mock that says one word is not taken to write an eighth of what it may."""
    found = from_sizes(PRICED, [Size(400, 1, tools=False)], trials=10, answer=0.25)
    assert found.tokens.expected == 10 * (104 + 1)
    assert found.tokens.high == pytest.approx(10 * (400 / 3 + 4 + 1))


def test_without_a_price_there_are_only_tokens():
    """An unknown cost is no cost of 0."""
    assert from_sizes(UNPRICED, [Size(400, 1, tools=False)], trials=1).usd is None
    assert from_rows(UNPRICED, [Spend(0, 10), Spend(0, 12)], trials=5).usd is None


def test_an_estimate_from_rows_holds_what_comes_in_19_of_20_cases():
    """The interval is for the sum of the trials that are still to come, not only for their mean."""
    held = 0
    for seed in range(400):
        draw = random.Random(seed)
        costs = [Spend(round(draw.gauss(1e6, 3e5)), 10) for _ in range(70)]
        found = from_rows(PRICED, costs[:20], trials=50).usd
        assert found is not None
        held += found.low <= sum(cost.usd for cost in costs[20:]) <= found.high
    assert 0.93 < held / 400 < 0.97


def test_equal_rows_leave_no_doubt():
    """When all trials cost the same, so will the rest."""
    found = from_rows(PRICED, [Spend(5_000_000, 7)] * 4, trials=100)
    assert found.usd is not None
    assert found.usd.low == found.usd.expected == found.usd.high == pytest.approx(0.5)
    assert together([found.usd, None, found.usd]).expected == pytest.approx(1)
    assert one_trial(from_rows(PRICED, [Spend(5, 7)] * 2, trials=0)) == Spend()

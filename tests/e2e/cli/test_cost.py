"""What a run will cost, as people meet it: estimates, confirmation, budgets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import CommandLine
from support.provider import CountingProvider
from support.releases import make_release
from support.terminal import Terminal

CASES = 40
EACH = 0.01
"""US dollars that a trial costs."""


@pytest.fixture
def config(here: Path) -> dict[str, Any]:
    """Forty cases in shards of eight; the model costs a dollar for a thousand tokens, and a trial takes ten."""
    release = make_release(here / "releases", CASES)
    priced = {
        "id": "local/m",
        "name": "m",
        "price": {"input": 1000, "output": 1000},
        "limits": {"max_output_tokens": 80},
    }
    return {"release": release.uri, "run_id": "r", "shard_size": 8, "models": [priced], "pool": "local"}


def write(config: dict[str, Any], provider: CountingProvider, **changes: Any) -> Path:
    models = [model | {"base_url": provider.base_url} for model in config["models"]]
    path = Path("run.yaml")
    path.write_text(yaml.safe_dump(config | {"models": models} | changes), encoding="utf-8")
    return path


def test_an_estimate_runs_nothing(config: dict[str, Any], trunchray: CommandLine, here: Path):
    """`--estimate` says for each model what the run will cost, with a range, and leaves no trace."""
    with CountingProvider() as provider:
        file = write(config, provider)
        before = trunchray.listing()
        value = trunchray("run", file, "--estimate", "--json").json
        plain = trunchray("run", file, "--estimate")
        assert trunchray.listing() == before
        assert provider.asked.total() == 0
    (model,) = value["models"]
    assert (model["name"], model["trials"], model["basis"], value["trials"]) == ("m", CASES, "sizes", CASES)
    assert 0 < model["usd"]["low"] < model["usd"]["expected"] < model["usd"]["high"]
    assert value["usd"] == model["usd"]
    assert plain.code == 0
    assert "cost $" in plain.out
    assert "a token is about 4 bytes" in plain.out


def test_what_a_mock_will_say_is_known(config: dict[str, Any], trunchray: CommandLine):
    """An estimate goes by its script or its recorded outputs, and not by what a model might say at most."""
    Path("o.jsonl").write_text("".join(f'{{"case_id": "c{n}", "output": "word"}}\n' for n in range(CASES)))
    price = {"input": 0, "output": 1}
    models = [
        {"id": "mock/script", "name": "s", "mock": {"script": [{"text": "word"}]}, "price": price},
        {"id": "mock/replay", "name": "r", "mock": {"replay": "o.jsonl"}, "price": price},
    ]
    Path("run.yaml").write_text(yaml.safe_dump(config | {"models": models}), encoding="utf-8")
    for model in trunchray("run", "run.yaml", "--estimate", "--json").json["models"]:
        assert model["usd"] == dict.fromkeys(("low", "expected", "high"), pytest.approx(CASES / 1e6)), model["name"]


def test_much_is_not_spent_unasked(config: dict[str, Any], trunchray: CommandLine):
    """Without a terminal, a run above confirm_above needs --yes; the refusal names the sum, and nothing ran."""
    with CountingProvider() as provider:
        file = write(config, provider, confirm_above=0.1)
        said = trunchray.refused("run", file)
        assert "about $" in said
        assert "confirm_above (0.1)" in said
        assert "--yes" in said
        assert provider.asked.total() == 0
        assert trunchray("run", file, "--budget-usd", "0.05").code == 3
        assert 0 < provider.asked.total() <= 5
        assert trunchray("run", file, "--yes").code == 0
        assert set(provider.asked.values()) == {1}


@pytest.mark.parametrize(("answer", "code", "asked"), [("y\n", 0, CASES), ("\n", 2, 0), ("", 2, 0)])
def test_on_a_terminal_much_is_asked_about(
    config: dict[str, Any],
    trunchray: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    asked: int,
):
    """The question comes with the table; only a yes lets the run begin, and what costs little is not asked about."""
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    with CountingProvider() as provider:
        assert trunchray("run", write(config, provider, confirm_above=0.1)).code == code
        assert provider.asked.total() == asked
        assert "Go on? [y/N]" in screen.text()
        assert "cost $" in screen.text()
        assert ("was not confirmed. Nothing was run" in screen.text()) == (code == 2)
        assert trunchray("run", write(config, provider, confirm_above=100, run_id="s")).code == 0
        assert screen.text().count("Go on?") == 1


def test_a_budget_that_is_reached_says_how_to_go_on(config: dict[str, Any], trunchray: CommandLine):
    """Exit 3 with what is spent, the budget, what is done and owed; a larger budget goes on from there."""
    with CountingProvider(latency=0.005) as provider:
        file = write(config, provider, budget={"usd": CASES / 2 * EACH})
        stopped = trunchray("run", file, "--json")
        asked = provider.asked.total()
        assert stopped.code == 3
        assert f"budget reached: spent ${asked * EACH:.4f} of $0.2000" in stopped.err
        assert f"{asked} of {CASES} trials are done" in stopped.err
        assert f"{CASES - asked} are owed" in stopped.err
        assert stopped.json["models"][0]["not_run_reason"] == "budget"
        assert "budget" in Path("runs/r/report/report.md").read_text(encoding="utf-8")
        assert trunchray("report", "runs/r", "--json").json["models"] == stopped.json["models"]
        state = trunchray("status", "runs/r", "--json").json
        assert state["latest"]["agents"][0]["spent_usd"] == pytest.approx(asked * EACH)
        assert trunchray("run", file, "--budget-usd", "1").code == 0
        assert set(provider.asked.values()) == {1}
        assert provider.asked.total() == CASES


def test_a_pilot_measures_and_the_run_goes_on(config: dict[str, Any], trunchray: CommandLine):
    """The rest is estimated from real trials; below confirm_above it is run at once."""
    with CountingProvider() as provider:
        file = write(config, provider, confirm_above=0.25)
        refused = trunchray("run", file, "--pilot", "10")
        assert refused.code == 3
        assert "about $0.30 ($0.30 to $0.30)" in refused.err
        assert provider.asked.total() == 10
        only = trunchray("run", file, "--pilot", "20", "--estimate", "--json").json
        assert (only["models"][0]["basis"], only["models"][0]["rows"], only["trials"]) == ("rows", 20, 20)
        assert provider.asked.total() == 20
        done = trunchray("run", file, "--pilot", "21", "--json")
        assert (done.code, done.json["complete"]) == (0, True)
        assert "21 trials" in done.err
        assert set(provider.asked.values()) == {1}


def test_unpriced_models_are_refused_under_a_budget_in_dollars(config: dict[str, Any], trunchray: CommandLine):
    """The message names the model and every way on; with --allow-unpriced it runs and is not counted."""
    with CountingProvider() as provider:
        config["models"][0].pop("price")
        file = write(config, provider, budget={"usd": 1})
        said = trunchray.refused("run", file)
        assert "'m'" in said
        assert "--allow-unpriced" in said
        assert "budget.tokens" in said
        assert trunchray("run", file, "--allow-unpriced").code == 0
        assert provider.asked.total() == CASES


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"usd": 0}, "budget.usd: must be greater than 0 (got 0)"),
        ({"token": 5}, "budget.token: unknown key"),
        ({"tokens": 1.5}, "budget.tokens"),
    ],
)
def test_budgets_that_make_no_sense(config: dict[str, Any], trunchray: CommandLine, budget: dict[str, Any], said: str):
    """They are refused with the place and the value."""
    with CountingProvider() as provider:
        assert said in trunchray.refused("run", write(config, provider, budget=budget))

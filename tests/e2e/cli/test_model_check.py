"""models check, as people and programs meet it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import CommandLine
from support.provider import CountingProvider

QUESTION = "Answer with the word: ready"
KEY = "sk-very-secret-0123456789"


def write(here: Path, *models: dict[str, Any]) -> Path:
    path = here / "models.yaml"
    path.write_text(yaml.safe_dump({"models": list(models)}), encoding="utf-8")
    return path


@pytest.mark.parametrize("transport", ["openai", "litellm"])
def test_a_model_that_answers(transport: str, here: Path, trunchray: CommandLine):
    """One request; its name and time, its price and the provider's limits are shown, and the exit code is 0."""
    with CountingProvider() as provider:
        provider.sends = {"X-RateLimit-Limit-Requests": "500", "anthropic-ratelimit-tokens-remaining": "7", "X-Id": "1"}
        asked = {"id": "hosted_vllm/m", "transport": transport, "base_url": provider.base_url}
        path = write(here, asked | {"name": "m", "price": {"input": 0.15, "output": 0.6}})
        value = trunchray("models", "check", path, "--json")
        assert value.code == 0, value.err
        assert provider.asked == {QUESTION: 1}
        shown = trunchray("models", "check", path)
    (model,) = value.json["models"]
    assert (model["name"], model["model"], model["ok"], model["answered_as"]) == ("m", asked["id"], True, "counting")
    assert model["seconds"] > 0
    assert (model["price"]["input"], model["usage"]["inputTokens"], model["problem"]) == (0.15, 7, None)
    limits = {"anthropic-ratelimit-tokens-remaining": "7", "x-ratelimit-limit-requests": "500"}
    assert model["limits"] == limits
    assert "works" in shown.out
    assert "0.15 / 0.6" in shown.out
    assert "m: anthropic-ratelimit-tokens-remaining 7, x-ratelimit-limit-requests 500\n" in shown.out


def test_each_that_does_not_says_why(here: Path, trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """A missing key, a refusal, nobody there: exit code 1, and the others are asked all the same."""
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with CountingProvider() as provider, CountingProvider() as refusing:
        refusing.failing = {QUESTION: 401}
        refusing.sends = {"Retry-After": "7", "X-RateLimit-Reset": f"9 {KEY}"}
        path = write(
            here,
            {"id": "local/fine", "base_url": provider.base_url},
            {"id": "local/refused", "base_url": refusing.base_url, "api_key_env": "TEST_KEY"},
            {"id": "local/away", "base_url": "http://127.0.0.1:9/v1"},
            {"id": "groq/keyless"},
        )
        outcome = trunchray("models", "check", path, "--json")
        shown = trunchray("models", "check", path)
        assert refusing.asked == {QUESTION: 2}, "nothing is asked again"
    assert (outcome.code, shown.code) == (1, 1)
    fine, refused, away, keyless = outcome.json["models"]
    assert fine["ok"]
    assert refused["problem"]["type"] == "authentication"
    assert "the key came from TEST_KEY" in refused["problem"]["message"]
    assert refused["limits"] == {"retry-after": "7", "x-ratelimit-reset": "9 [key]"}
    assert away["problem"]["type"] == "connection"
    assert keyless["problem"]["type"] == "configuration"
    assert "set the environment variable GROQ_API_KEY" in keyless["problem"]["message"]
    assert "local/away: connection: 127.0.0.1:9: " in shown.out
    assert KEY not in outcome.out + outcome.err + shown.out + shown.err


def test_only_some(here: Path, trunchray: CommandLine):
    """`--model` takes a name or an id; an unknown one is refused."""
    with CountingProvider() as provider:
        path = write(here, {"id": "mock/echo", "name": "a"}, {"id": "local/m", "base_url": provider.base_url})
        only = trunchray("models", "check", path, "--model", "a", "--json").json["models"]
        assert [(model["name"], model["ok"], model["seconds"]) for model in only] == [("a", True, None)]
        assert provider.asked.total() == 0
    assert "--model c: the run config has no such model" in trunchray.refused("models", "check", path, "--model", "c")


def test_a_run_config(here: Path, trunchray: CommandLine):
    """The models of a whole run are checked before anything of it is compiled."""
    (here / "run.yaml").write_text("release: nowhere\nmodels: [{id: mock/echo}]\n", encoding="utf-8")
    assert trunchray("models", "check", "run.yaml").code == 0
    assert "no such file: 'nope.yaml'" in trunchray.refused("models", "check", "nope.yaml")


def test_a_server_that_says_nothing(here: Path, trunchray: CommandLine):
    """It is waited for as long as the option says."""
    with CountingProvider(latency=60) as provider:
        path = write(here, {"id": "local/m", "base_url": provider.base_url})
        outcome = trunchray("models", "check", path, "--timeout", 0.2, "--json")
    (model,) = outcome.json["models"]
    assert (outcome.code, model["problem"]["type"]) == (1, "timeout")
    assert "no answer in 0.2 s" in model["problem"]["message"]

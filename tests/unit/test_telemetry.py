"""What observers are told, and that nobody pays when there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trunchray.adapters.telemetry.connect import connect
from trunchray.adapters.telemetry.log import LogListener
from trunchray.adapters.telemetry.metrics import METRICS, Metric, MetricsListener
from trunchray.adapters.telemetry.observed import Facts, Observed
from trunchray.adapters.telemetry.traces import attributes
from trunchray.core.telemetry import SILENCE, Kind, LogConfig, Observe
from trunchray.errors import ProviderError, UsageError

CONFIGS = Path(__file__).parents[2] / "configs" / "README.md"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Ear:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Facts]] = []

    def began(self, kind: Kind, facts: Facts) -> None:
        pass

    def ended(self, _began: None, kind: Kind, facts: Facts, seconds: float) -> None:
        self.heard.append((kind, facts | {"seconds": seconds}))

    def happened(self, kind: Kind, facts: Facts) -> None:
        self.heard.append((kind, facts))

    def close(self) -> None:
        pass


def test_spans_are_timed_and_say_what_they_are_part_of():
    """What is inside a trial says which; what is said after it does not."""
    ear, clock = Ear(), Clock()
    telemetry = Observed([ear], {"run": "r"}, clock)
    with telemetry.span("trial", trial="t", model="m", queued=1.5) as trial:
        clock.now = 2
        with telemetry.span("request", step=1) as request:
            clock.now = 5
            request.add(input_tokens=7)
        trial.add(outcome="passed")
    telemetry.event("closed", model="n")
    assert ear.heard == [
        ("request", {"run": "r", "trial": "t", "model": "m", "step": 1, "input_tokens": 7, "seconds": 3}),
        ("trial", {"run": "r", "trial": "t", "model": "m", "queued": 1.5, "outcome": "passed", "seconds": 5}),
        ("closed", {"run": "r", "model": "n"}),
    ]


def test_what_went_wrong_is_told_by_its_slug():
    """Messages may quote anything; they are left out."""
    ear = Ear()
    with pytest.raises(ProviderError), Observed([ear], {}).span("request"):
        raise ProviderError("your prompt was …", type="rate_limited")
    assert ear.heard[0][1]["failure"] == "rate_limited"
    assert "prompt" not in repr(ear.heard)


def test_a_listener_that_fails_harms_nobody():
    """Neither the work nor the other listeners."""

    class Broken(Ear):
        def ended(self, *_: Any) -> None:
            raise ConnectionError

        happened = began = ended

    ear = Ear()
    telemetry = Observed([Broken(), ear], {})
    with telemetry.span("trial"):
        telemetry.event("lost")
    assert [kind for kind, _ in ear.heard] == ["lost", "trial"]


def test_nobody_is_told_by_default():
    """Without an `observe` section there is one object that does nothing, shared by all."""
    assert connect(Observe(), run="r", worker="w", on_ray=True) is SILENCE
    with SILENCE.span("trial") as first, SILENCE.span("request") as second:
        assert first is second


def logged(**config: Any) -> list[str]:
    """What a log of some events holds."""
    lines: list[str] = []
    log = LogListener(LogConfig(**config), write=lines.append, now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    telemetry = Observed([log], {"run": "r"}, Clock())
    with telemetry.span("run", planned=2), telemetry.span("shard", shard="s"):
        with telemetry.span("trial", trial="t1", case="a b\n"):
            pass
        with telemetry.span("trial", trial="t2") as trial:
            trial.add(outcome="error", failure="timeout")
        telemetry.event("closed", model="m", reason="budget")
    telemetry.close()
    return lines


def test_a_log_for_programs():
    """One JSON object a line, with time, level, event and what it is about; nothing where nothing is known."""
    lines = [json.loads(line) for line in logged(level="debug")]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("info", "run_began"),
        ("debug", "trial_ended"),
        ("warning", "trial_ended"),
        ("warning", "closed"),
        ("info", "shard_ended"),
        ("info", "run_ended"),
    ]
    assert lines[2] == {
        "time": "2026-01-02T03:04:05.000000Z",
        "level": "warning",
        "event": "trial_ended",
        "run": "r",
        "shard": "s",
        "trial": "t2",
        "outcome": "error",
        "failure": "timeout",
        "seconds": 0,
    }
    assert len(logged(level="info")) == 5
    assert len(logged(level="warning")) == 2


def test_a_log_for_people():
    """One line each, whatever a case is called."""
    lines = logged(format="text", level="debug")
    assert lines[0] == "2026-01-02T03:04:05.000000Z INFO run_began run=r planned=2\n"
    assert lines[1] == (
        '2026-01-02T03:04:05.000000Z DEBUG trial_ended run=r shard=s trial=t1 case="a b\\n" seconds=0.0\n'
    )


def test_a_log_that_cannot_be_written(tmp_path: Path):
    """It is said before anything is run."""
    (tmp_path / "file").touch()
    observe = Observe(log=LogConfig(file=str(tmp_path / "file" / "log")))
    with pytest.raises(UsageError, match=r"observe\.log\.file '.*' cannot be written: .*; choose another place"):
        connect(observe, run="r", worker="w", on_ray=False)


class Meter:
    """What a metric was given."""

    def __init__(self, metric: Metric, given: dict[str, list[tuple[float, Mapping[str, str]]]]) -> None:
        self._given = given.setdefault(metric.name, [])

    def give(self, value: float, tags: Mapping[str, str]) -> None:
        self._given.append((value, tags))


def test_counters_add_up_between_two_flushes():
    """A thousand trials are handed on as one number a second; a trial that was stopped is none."""
    given: dict[str, list[tuple[float, Mapping[str, str]]]] = {}
    clock = Clock()
    metrics = MetricsListener("r", "w", lambda metric: Meter(metric, given), clock)
    telemetry = Observed([metrics], {}, clock)
    for number in range(1000):
        with telemetry.span("trial", model="m", queued=0.5) as trial:
            with telemetry.span("request", retry=number % 2) as request:
                if number % 4 == 0:
                    request.add(failure="rate_limited")
            trial.add(outcome="passed", tokens=10, cost=0.25)
    with telemetry.span("trial", model="m"):
        pass
    telemetry.event("standing", model="m", permits=8, in_flight=3, waiting=0)
    assert not given.get("trunchray_trials")
    clock.now = 2
    with telemetry.span("shard", parts=2):
        pass
    tags = {"run": "r", "model": "m"}
    assert given["trunchray_trials"] == [(1000, tags | {"outcome": "passed"})]
    assert given["trunchray_requests"] == [(1000, tags)]
    assert given["trunchray_retries"] == [(500, tags)]
    assert given["trunchray_refusals"] == [(250, tags)]
    assert given["trunchray_tokens"] == [(10_000, tags)]
    assert given["trunchray_cost_usd"] == [(250, tags)]
    assert given["trunchray_parts"] == [(2, {"run": "r"})]
    assert given["trunchray_permits"] == [(8, tags)]
    assert len(given["trunchray_trial_seconds"]) == 1000


def test_metrics_are_documented():
    """The table beside the configs names each of them, with its kind and tags, and no other."""
    rows = re.findall(r"^\| `(trunchray_\w+)` \| (\w+) \| (.*?) \|", CONFIGS.read_text(encoding="utf-8"), re.M)
    assert rows == [(one.name, one.kind, ", ".join(f"`{tag}`" for tag in one.tags)) for one in METRICS]


def test_attributes_of_spans():
    """Names that collectors know; only facts that are listed are sent."""
    facts: Facts = {"provider": "openai", "asked": "gpt", "finish_reason": "stop", "input_tokens": 3, "other": "x"}
    assert attributes("request", facts) == {
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.operation.name": "chat",
        "gen_ai.response.finish_reasons": ["stop"],
    }
    assert attributes("evaluator", {"outcome": "passed", "score": 1.0}) == {
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "passed",
    }

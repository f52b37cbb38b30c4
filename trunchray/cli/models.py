"""Commands about models: models check."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from trunchray.cli.options import Json
from trunchray.cli.output import Output

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

    from trunchray.adapters.models.probe import Probe
    from trunchray.core.agent import ModelAgent

AT_ONCE = 16
"""Models that are asked at a time."""


def register(app: typer.Typer) -> None:
    models = typer.Typer(help="Look at the models of a run before it begins.", rich_markup_mode=None)
    models.callback()(_group)
    models.command()(check)
    app.add_typer(models, name="models")


def _group() -> None:
    """Look at the models of a run before it begins."""


def check(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="A run config, or a file of models (YAML).")],
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="ID", help="Only these of its models, by name or id.")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long one may take.")] = 60.0,
    json: Json = False,
) -> None:
    """Ask each model one tiny question, and show how fast it answers, as what, at what price, within which limits.

    Exits with 0 when all answer and with 1 when one does not.

    Example: trunchray models check configs/models/openai.yaml --model openai/gpt-4.1-mini
    """
    from trunchray.adapters.models.connect import load_clients
    from trunchray.cli.job import chosen
    from trunchray.core.agent import Limits
    from trunchray.core.digest import sha256
    from trunchray.frontends.agents import build_agents, read_recorded
    from trunchray.frontends.model_config import SomeLimits
    from trunchray.frontends.run_config import read_models

    output = Output(as_json=json)
    models = read_models(config)
    if model:
        models = chosen(models, model)
    recorded = read_recorded(models)
    agents = build_agents(models, recorded, limits=SomeLimits(), release_limits=Limits())
    agents = [_patient(agent, timeout) for agent in agents]
    load_clients(agents)
    inputs = {sha256(content): content for content in recorded.values()}
    probes = asyncio.run(_probes(agents, inputs))
    found = list(zip(agents, probes, strict=True))
    output.result({"models": [_described(*one) for one in found]}, lambda console: _show(console, found))
    if any(probe.problem for probe in probes):
        raise typer.Exit(1)


def _patient(agent: ModelAgent, seconds: float) -> ModelAgent:
    pacing = agent.pacing.model_copy(update={"timeout": min(seconds, agent.pacing.timeout)})
    return agent.model_copy(update={"pacing": pacing})


async def _probes(agents: Sequence[ModelAgent], inputs: Mapping[str, bytes]) -> list[Probe]:
    from trunchray.adapters.models.probe import probe

    places = asyncio.Semaphore(AT_ONCE)

    async def one(agent: ModelAgent) -> Probe:
        replay = inputs.get(agent.mock.replay) if agent.mock and agent.mock.replay else None
        async with places:
            return await probe(agent, environ=os.environ, replay=replay)

    return await asyncio.gather(*map(one, agents))


def _described(agent: ModelAgent, probe: Probe) -> JsonValue:
    return {
        "name": agent.name,
        "model": agent.model,
        "ok": probe.problem is None,
        "price": agent.price.model_dump(mode="json") if agent.price else None,
        **probe.model_dump(mode="json"),
    }


def _show(console: Console, found: Sequence[tuple[ModelAgent, Probe]]) -> None:
    from trunchray.cli.screen import Line, fitted

    columns = [("", 0), ("seconds", 1), ("answered as", 3), ("$ per million in / out", 2)]
    console.print(fitted(console, "model", columns, [Line(agent.name, _cells(agent, probe)) for agent, probe in found]))
    for agent, probe in found:
        if probe.limits:
            limits = ", ".join(f"{name} {value}" for name, value in probe.limits.items())
            console.print(f"{agent.name}: {limits}")
    for agent, probe in found:
        if probe.problem:
            console.print(f"{agent.name}: {probe.problem.type}: {probe.problem.message}", style="red")


def _cells(agent: ModelAgent, probe: Probe) -> list[str]:
    from trunchray.cli.screen import one_line

    return [
        "fails" if probe.problem else "works",
        "–" if probe.seconds is None else f"{probe.seconds:.2f}",
        one_line(probe.answered_as or "–", 60),
        f"{agent.price.input:g} / {agent.price.output:g}" if agent.price else "–",
    ]

"""Commands that serve models: mock-server, local-model."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trunchray.cli.options import Json, Port
from trunchray.cli.output import Output
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from trunchray.adapters.models.rate_limit import RateLimit
    from trunchray.core.agent import ModelAgent

MockId = Literal["mock/echo", "mock/replay", "mock/script"]


def register(app: typer.Typer) -> None:
    app.command("mock-server")(mock_server)
    app.command("local-model")(local_model)


def mock_server(
    model: Annotated[MockId, typer.Option(help="What answers.")] = "mock/echo",
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded outputs (JSONL) for mock/replay.")
    ] = None,
    release: Annotated[
        str | None, typer.Option(metavar="RELEASE", help="The release whose prompts the replayed cases are known by.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replies for mock/script: a YAML list of {text, tool_calls}.")
    ] = None,
    latency: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="The time before every answer.")] = 0.0,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=SHARE", help="For example rate_limited=0.1; also server_error, timeout, malformed."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Decides which requests meet a fault.")] = 0,
    requests_per_minute: Annotated[
        float | None, typer.Option(metavar="N", min=0.01, help="More than so many are refused with 429.")
    ] = None,
    retry_after: Annotated[
        bool, typer.Option("--retry-after/--no-retry-after", help="Whether a 429 says how long to wait.")
    ] = True,
    host: Annotated[str, typer.Option(metavar="ADDR", help="The address to listen on.")] = "127.0.0.1",
    port: Port = 8089,
    json: Json = False,
) -> None:
    """Serve a mock model over HTTP until interrupted.

    It speaks the OpenAI format, and is as deterministic as the mocks of a run.

    Example: trunchray mock-server --latency 0.2 --fault rate_limited=0.05
    """
    from trunchray.adapters.models.rate_limit import RateLimit
    from trunchray.core.agent import Limits
    from trunchray.frontends.agents import build_agents, read_recorded
    from trunchray.frontends.checked import validated
    from trunchray.frontends.model_config import ModelConfig, SomeLimits
    from trunchray.frontends.model_files import Location
    from trunchray.frontends.yaml_file import read_yaml

    output = Output(as_json=json)
    for name, file in (("replay", replay), ("script", script)):
        if model == f"mock/{name}" and file is None:
            raise UsageError(f"{model} needs --{name} FILE")
    scripted = read_yaml(str(script)) if script else None
    settings = {
        "replay": str(replay) if replay else None,
        "script": scripted.value if scripted else (),
        "latency": latency,
        "faults": dict(_fault(text) for text in fault or []),
        "seed": seed,
    }

    def place(location: Location) -> str:
        return scripted.place(location[2:]) if scripted and "script" in location else "mock-server"

    config = validated(ModelConfig, {"id": model, "mock": settings}, place)
    recorded = read_recorded((config,))
    (agent,) = build_agents((config,), recorded, limits=SomeLimits(), release_limits=Limits())
    limit = None if requests_per_minute is None else RateLimit(requests_per_minute, names_wait=retry_after)
    serving = _serve(agent, [*recorded.values()], _prompts(release), limit, host=host, port=port, output=output)
    asyncio.run(serving)


def local_model(
    gguf: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A model in the GGUF format; SmolLM2-135M-Instruct by default.")
    ] = None,
    slots: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Requests that are answered at a time.")] = 4,
    context: Annotated[
        int, typer.Option(metavar="TOKENS", min=128, help="The most that a prompt and its answer may take together.")
    ] = 2048,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Threads that compute; one per processor by default.")
    ] = None,
    port: Port = 8081,
    json: Json = False,
) -> None:
    """Serve a small real model over HTTP until interrupted.

    It speaks the OpenAI format and needs `pip install 'trunchray[local]'`; its weights (98 MB) are fetched once.

    Example: trunchray local-model --port 8081
    """
    from trunchray.adapters.models.local_server import LocalModel, serve
    from trunchray.adapters.models.weights import smollm2

    output = Output(as_json=json)
    model = LocalModel(gguf or smollm2(), slots, context, threads)
    with serve(model, port=port) as url:
        asyncio.run(_shown(output, url, f"local/{model.name}"))


async def _shown(output: Output, url: str, model: str) -> None:
    """Say where the server is, and wait for SIGINT or SIGTERM."""
    done = interrupted()
    output.result({"base_url": url, "model": model}, lambda console: console.print(url))
    await done.wait()


def interrupted() -> asyncio.Event:
    """Set by SIGINT or SIGTERM."""
    done = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    return done


async def _serve(
    agent: ModelAgent,
    recorded: list[bytes],
    prompts: dict[str, str],
    limit: RateLimit | None,
    *,
    host: str,
    port: int,
    output: Output,
) -> None:
    """Answer until SIGINT or SIGTERM."""
    from trunchray.adapters.models.replay import load_replay
    from trunchray.adapters.models.server import serve

    replay = load_replay(recorded[0], "the recorded outputs") if recorded else None
    async with serve(agent, host=host, port=port, replay=replay, prompts=prompts, limit=limit) as url:
        await _shown(output, url, agent.model)


def _prompts(release: str | None) -> dict[str, str]:
    if release is None:
        return {}
    from trunchray.adapters.releases import open_release

    return {case.input.prompt: case.id for case in open_release(release).cases()}


def _fault(text: str) -> tuple[str, float]:
    from trunchray.core.agent import Faults
    from trunchray.core.names import nearest

    kind, _, share = text.partition("=")
    if kind not in Faults.model_fields:
        raise UsageError(f"--fault {text}: no such kind of fault{nearest(kind, Faults.model_fields)}")
    try:
        return kind, float(share)
    except ValueError as e:
        raise UsageError(f"--fault {text}: give a share from 0 to 1, for example {kind}=0.1") from e

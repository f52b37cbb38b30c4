"""Commands about models: mock-server."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from trunchray.cli.options import Json
from trunchray.cli.output import Output
from trunchray.core.agent import Faults, Limits
from trunchray.core.names import nearest
from trunchray.errors import UsageError


def register(app: typer.Typer) -> None:
    app.command("mock-server")(mock_server)


def mock_server(
    model: Annotated[str, typer.Option(metavar="ID", help="mock/echo, mock/replay or mock/script.")] = "mock/echo",
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded outputs (JSONL) for mock/replay.")
    ] = None,
    release: Annotated[
        str | None, typer.Option(metavar="RELEASE", help="The release whose prompts the replayed cases are known by.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replies for mock/script: a YAML list of {text, tool_calls}.")
    ] = None,
    latency: Annotated[float, typer.Option(min=0, help="Seconds before every answer.")] = 0.0,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=SHARE", help="For example rate_limited=0.1; also server_error, timeout, malformed."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides which requests meet a fault.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8089,
    json: Json = False,
) -> None:
    """Serve a mock model over HTTP in the OpenAI format, until it is interrupted.

    Example: `trunchray mock-server --latency 0.2 --fault rate_limited=0.05`
    """
    from trunchray.frontends.run_config import ModelConfig, SomeLimits, build_agents, read_yaml, validated

    output = Output(as_json=json)
    settings = {
        "replay": str(replay.absolute()) if replay else None,
        "script": read_yaml(script) if script else (),
        "latency": latency,
        "faults": dict(_fault(text) for text in fault or []),
        "seed": seed,
    }
    config = validated(ModelConfig, {"id": model, "mock": settings}, "mock-server")
    (agent,), inputs = build_agents((config,), limits=SomeLimits(), release_limits=Limits(), folder=Path())
    asyncio.run(_serve(agent, inputs, _prompts(release), host=host, port=port, output=output))


async def _serve(
    agent: Any, inputs: dict[str, bytes], prompts: dict[str, str], *, host: str, port: int, output: Output
) -> None:
    from trunchray.adapters.models.replay import load_replay
    from trunchray.adapters.models.server import serve

    recorded = [load_replay(content, "the recorded outputs") for content in inputs.values()]
    done = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    async with serve(agent, host=host, port=port, replay=recorded[0] if recorded else None, prompts=prompts) as url:
        output.result({"base_url": url, "model": agent.model}, lambda console: console.print(url, markup=False))
        output.stdout.file.flush()
        await done.wait()


def _prompts(release: str | None) -> dict[str, str]:
    if release is None:
        return {}
    from trunchray.adapters.releases import open_release

    return {case.input.prompt: case.id for case in open_release(release).cases()}


def _fault(text: str) -> tuple[str, float]:
    kind, _, share = text.partition("=")
    if kind not in Faults.model_fields:
        raise UsageError(f"--fault {text}: no such kind of fault{nearest(kind, Faults.model_fields)}")
    try:
        return kind, float(share)
    except ValueError as e:
        raise UsageError(f"--fault {text}: give a share from 0 to 1, for example {kind}=0.1") from e

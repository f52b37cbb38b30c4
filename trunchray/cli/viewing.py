"""The command that shows trials in a browser: view."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from trunchray.cli.options import Json, Port, located
from trunchray.cli.output import Output
from trunchray.cli.serving import interrupted

if TYPE_CHECKING:
    from trunchray.frontends.viewer.viewer import Viewer


def register(app: typer.Typer) -> None:
    app.command()(view)


def view(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders or URIs of runs.")],
    case: Annotated[
        str | None,
        typer.Option("--case", metavar="NAME", help="Open the page of this case, by its id or its author's name."),
    ] = None,
    private: Annotated[
        bool,
        typer.Option(
            "--show-private", help="Also show checks, expected answers, data and what a benchmark's evaluators said."
        ),
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    host: Annotated[str, typer.Option(metavar="ADDR", help="The address to listen on.")] = "127.0.0.1",
    port: Port = 8420,
    json: Json = False,
) -> None:
    """Look at the trials of runs in a browser.

    Serves them until it is interrupted, and changes nothing. Whoever reaches the address sees all of it. Needs
    `pip install 'trunchray[view]'`.

    Example: trunchray view runs/quickstart

    Example: trunchray view runs/yesterday s3://bucket/runs/today --case unopened
    """
    output = Output(as_json=json)
    with suppress(KeyboardInterrupt):  # which is how it ends, also when nothing is shown yet
        _view(output, runs, case, private=private, host=host, port=port, browser=browser and not json)


def _view(
    output: Output, runs: list[str], case: str | None, *, private: bool, host: str, port: int, browser: bool
) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from importlib import import_module

    from trunchray.adapters.scratch import scratch
    from trunchray.frontends.viewer.viewer import Viewer

    runs = [located(run) for run in runs]
    with scratch() as folder, ThreadPoolExecutor(1) as aside:
        opening = aside.submit(Viewer, runs, folder, private=private)
        import_module("trunchray.adapters.web_site")  # takes as long as DuckDB with half a million rows

        with opening.result() as viewer:
            page = "/" if case is None else f"/case?{urlencode({'id': viewer.find_case(case)})}"
            asyncio.run(_serve(viewer, output, page, host=host, port=port, browser=browser))


async def _serve(viewer: Viewer, output: Output, page: str, *, host: str, port: int, browser: bool) -> None:
    """Answer until SIGINT or SIGTERM."""
    from trunchray.adapters.web_site import serve
    from trunchray.frontends.viewer.viewer import PAGES

    async with serve(PAGES, viewer.questions, host=host, port=port) as address:
        done = interrupted()
        if not _is_loopback(host):
            output.warn(f"everybody who reaches {address} can read these runs")
        url = address + page
        output.result({"url": url}, lambda console: console.print(f"{url}  (Ctrl-C ends it)"))
        if browser and _has_screen():
            await asyncio.to_thread(webbrowser.open, url)
        await done.wait()


def _has_screen() -> bool:
    """Whether a browser would have a window, and not take over the terminal."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

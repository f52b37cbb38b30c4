"""Listening for HTTP on an address of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from trunchray.errors import UsageError


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncGenerator[str]:
    """Serve the application until the block ends; gives the address, such as http://127.0.0.1:8089.

    Port 0 takes any free one. A handler is cancelled when whoever asked has gone away.

    Raises:
        UsageError: the address cannot be bound.
    """
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        await _bind(runner, host, port)
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _bind(runner: web.AppRunner, host: str, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
    except OSError as e:
        raise UsageError(f"cannot listen on {host}:{port}: {e.strerror or e}; choose another port, or 0") from e

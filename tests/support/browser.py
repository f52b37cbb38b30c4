"""A real browser without a window, driven through the DevTools protocol of Chromium."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-extensions", "--remote-debugging-port=0"),
)
_KEYS = {"Enter": "\r"}
"""Keys that write something else than their names."""


def chromium() -> str | None:
    """The program, when it is installed."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


@dataclass
class Page:
    """A tab. `events` are those of the protocol so far, by name."""

    _socket: aiohttp.ClientWebSocketResponse
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)
    _waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    async def listen(self) -> None:
        """Take what the browser says, until it is gone."""
        async for message in self._socket:
            said = message.json()
            if "id" not in said:
                self.events.append((said["method"], said["params"]))
            elif not (future := self._waiting.pop(said["id"])).done():
                future.set_result(said)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser for something; what it answers."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await self._waiting[number]
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    async def open(self, url: str, until: str = "document.readyState === 'complete'") -> None:
        """Go to a page and wait until a condition holds there."""
        await self.call("Page.navigate", url=url)
        await self.until(until)

    async def value(self, expression: str) -> Any:
        """What a JavaScript expression is worth in the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "it failed"))
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until a JavaScript expression holds, also over the way to another page."""
        look = f"new Promise(done => (function look() {{ {condition} ? done(true) : setTimeout(look, 20); }})())"
        while True:
            try:
                await self.value(look)
            except RuntimeError as e:
                if not re.search("context|navigated|not found|undefined|null", str(e)):
                    raise
            else:
                return

    async def press(self, key: str) -> None:
        """Press a key and let it go."""
        text = _KEYS.get(key, key if len(key) == 1 else "")
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def screen(self, width: int, *, scheme: str = "light", height: int = 900) -> None:
        """Be a screen of so many pixels, with a light or dark scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def screenshot(self) -> bytes:
        """How the whole page looks, as PNG."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def requested(self) -> list[str]:
        """The URLs of all requests so far."""
        return [params["request"]["url"] for name, params in self.events if name == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the page or the browser complained about so far: errors, and what the policy of the page refused."""
        logged = [params["entry"]["text"] for name, params in self.events if name == "Log.entryAdded"]
        thrown = [str(params) for name, params in self.events if name == "Runtime.exceptionThrown"]
        return logged + thrown


@asynccontextmanager
async def browsing() -> AsyncGenerator[Page]:
    """A tab of a browser that knows nothing and nobody."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with _started(profile) as address, aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/json/list") as response:
                tabs = await response.json()
            (url,) = [tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"]
            async with session.ws_connect(url, max_msg_size=0) as socket:
                page = Page(socket)
                listening = asyncio.create_task(page.listen())
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await page.call(f"{domain}.enable")
                yield page
                await socket.close()
                await listening


@asynccontextmanager
async def _started(profile: str) -> AsyncGenerator[str]:
    """The browser as a child process; gives the address of its debugger."""
    process = await asyncio.create_subprocess_exec(
        *(str(chromium()), *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
        stdout=DEVNULL,
        stderr=PIPE,
        env=os.environ | {"HOME": profile},
    )
    assert process.stderr
    reading: list[asyncio.Task[bytes]] = []
    try:
        address = await _address(process.stderr)
        reading.append(asyncio.create_task(process.stderr.read()))  # it may say more than a pipe holds
        yield address
    finally:
        process.kill()
        await process.wait()
        for task in reading:
            await task


async def _address(said: asyncio.StreamReader) -> str:
    """Where the browser listens, which is among the first things it says."""
    async for line in said:
        if match := re.search(rb"DevTools listening on ws://([^/]+)/", line):
            return match[1].decode()
    raise RuntimeError("the browser ended before it listened")

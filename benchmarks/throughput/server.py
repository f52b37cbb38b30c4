"""A chat endpoint on loopback that answers everything alike: `server.c` where there is a C compiler, else this file."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

ANSWER = {
    "id": "chatcmpl-0",
    "object": "chat.completion",
    "model": "fixed",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "The answer is 42. " + "It takes a moment to explain. " * 30},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 250, "completion_tokens": 200, "total_tokens": 450},
}
"""About 1 KB."""

MESSAGE = {
    "id": "msg_0",
    "type": "message",
    "role": "assistant",
    "model": "fixed",
    "content": [{"type": "text", "text": ANSWER["choices"][0]["message"]["content"]}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 250, "output_tokens": 200},
}
"""The same in Anthropic's protocol."""

CALLS = 2
"""Calls of a tool before `conversing` answers."""


@contextmanager
def serving(latency_ms: int = 0, reply: dict[str, Any] = ANSWER, answered: list[float] | None = None) -> Generator[str]:
    """The base URL of a server in a process of its own, which always gives this reply.

    `answered` gets the second of each answer, from anywhere, when the block ends.
    """
    with tempfile.TemporaryDirectory() as temporary:
        answer = Path(temporary) / "answer.json"
        answer.write_text(json.dumps(reply))
        command = [*_program(Path(temporary)), str(latency_ms), str(answer)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin
            assert process.stdout
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
            process.stdin.close()
            times = process.stdout.read().split()
    if answered is not None:
        answered += [int(each) / 1e6 for each in times]


def in_flight(answered: Sequence[float], latency: float) -> float:
    """How many requests waited for their answer on average, in the middle half of the time; `latency` in seconds."""
    first, last = min(answered), max(answered)
    low, high = first + (last - first) * 0.25, first + (last - first) * 0.75
    return sum(low <= each < high for each in answered) * latency / (high - low)


@contextmanager
def conversing() -> Generator[str]:
    """The base URL of a server in a process of its own, whose model calls the tool `add` and then answers."""
    command = [sys.executable, str(HERE / "server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.kill()


def _program(temporary: Path) -> list[str]:
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler: the server is Python's and takes processor time from what is measured", file=sys.stderr)
        return [sys.executable, str(HERE / "server.py")]
    program = temporary / "server"
    subprocess.run([compiler, "-O2", "-o", program, HERE / "server.c"], check=True)
    return [str(program)]


class _Connection(asyncio.Protocol):
    def __init__(self, latency: float, answer: bytes, answered: list[float]) -> None:
        self._latency, self._answer, self._answered = latency, answer, answered
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, rest = self._received.partition(b"\r\n\r\n")
            length = int((head.lower().partition(b"\r\ncontent-length:")[2].split() or [b"0"])[0])
            if len(rest) < length:
                return
            self._received = rest[length:]
            asyncio.get_running_loop().call_later(self._latency, self._send)

    def _send(self) -> None:
        self._transport.write(self._answer)
        self._answered.append(time.monotonic())


async def _serve(latency: float, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    answered: list[float] = []
    server = await loop.create_server(lambda: _Connection(latency, head + body, answered), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for each in answered:
        print(round(each * 1e6))


async def _converse() -> None:
    from trunchray.adapters.models.server import serve  # noqa: PLC0415 - only here
    from trunchray.core.agent import Mock, ModelAgent, ScriptedCall, ScriptedReply  # noqa: PLC0415

    call = ScriptedReply(tool_calls=(ScriptedCall(name="add", arguments={"a": 40, "b": 2}),))
    script = (*[call] * CALLS, ScriptedReply(text="The answer is 42."))
    async with serve(ModelAgent(name="m", model="mock/script", mock=Mock(script=script))) as base_url:
        print(base_url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        asyncio.run(_converse())
    else:
        asyncio.run(_serve(int(sys.argv[1]) / 1000, Path(sys.argv[2]).read_bytes()))

"""What attacks reach for: a machine with listeners, secrets and a victim, and ways to let attacks loose on it."""

from __future__ import annotations

import json
import os
import platform
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trunchray.adapters.sandbox.child import Child
from trunchray.adapters.sandbox.seccomp import MACHINES, refused_calls

ATTACKS = Path(__file__).parents[1] / "e2e" / "sandbox" / "attacks"
SECRET = "the secret of this test"
_NUMBERS = {  # of calls that are judged by their arguments, or by Landlock
    "x86_64": {"openat": 257, "unlinkat": 263, "execve": 59, "statx": 332, "getppid": 110},
    "aarch64": {"openat": 56, "unlinkat": 35, "execve": 221, "statx": 291, "getppid": 173},
}


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"export default 1; postMessage?.(1);"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name that the server looks for

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.reached = 0

    def get_request(self) -> tuple[socket.socket, Any]:
        self.reached += 1
        return super().get_request()

    def handle_error(self, *_: object) -> None:
        """Attacks break connections."""


@dataclass
class Target:
    """The attacked machine. `at` is what attacks are told of it."""

    at: dict[str, Any]
    server: _Server
    listeners: list[socket.socket] = field(default_factory=list[socket.socket])
    folder: Path = Path()
    before: dict[str, tuple[bytes, int]] = field(default_factory=dict[str, tuple[bytes, int]])

    def egress(self) -> list[str]:
        """Which listeners were reached."""
        ready, _, _ = select.select(self.listeners, [], [], 0)
        return [str(listener.getsockname()) for listener in ready] + ["http"] * self.server.reached

    def changes(self) -> list[str]:
        """Which files are not as they were."""
        now = _contents(self.folder)
        return sorted(name for name in now.keys() | self.before.keys() if now.get(name) != self.before.get(name))


@contextmanager
def attacked(folder: Path) -> Iterator[Target]:
    """Listeners of every kind, a secret in a folder, and links to it."""
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    unix, abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
    unix.bind(str(folder / "socket"))
    abstract.bind(f"\0trunchray-{os.getpid()}")
    for listener in (unix, abstract):
        listener.listen()
    at = _lay(folder) | {
        "tcp": server.server_port,
        "url": f"http://127.0.0.1:{server.server_port}/x.js",
        "udp": udp.getsockname()[1],
        "unix": str(folder / "socket"),
        "abstract": f"trunchray-{os.getpid()}",
        "pid": os.getpid(),
    }
    try:
        yield Target(at, server, [udp, unix, abstract], folder, _contents(folder))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for listener in (udp, unix, abstract):
            listener.close()


def _lay(folder: Path) -> dict[str, Any]:
    names = {"secret": SECRET, "victim": "x", "json": json.dumps({"secret": SECRET})}
    names |= {"module": f"export default {SECRET!r};", "addon": "x", "database": ""}
    suffixes = {"json": ".json", "module": ".mjs", "addon": ".node"}
    paths = {name: folder / f"{name}{suffixes.get(name, '')}" for name in names}
    for name, path in paths.items():
        path.write_text(names[name])
    (folder / "link").symlink_to(paths["secret"])
    machine = MACHINES[platform.machine()]
    numbers = _NUMBERS[platform.machine()] | {
        name: getattr(machine, name) for name in ("clone", "clone3", "tgkill", "prlimit", "prctl")
    }
    return {
        **{name: str(path) for name, path in paths.items()},
        "folder": str(folder),
        "link": str(folder / "link"),
        "calls": refused_calls(machine.column),
        "numbers": numbers,
    }


def _contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name: (path.read_bytes(), path.stat().st_mode) for path in files}


@dataclass(frozen=True)
class Outcome:
    """`kind` is "open" when the attack worked, "shut" when it failed, "died" or "killed" when its process ended."""

    kind: str
    evidence: Any = ""


def let_loose(
    start: Any, names: Sequence[str], at: Mapping[str, Any], *, deadline: float
) -> tuple[dict[str, Outcome], bytes]:
    """Run attacks in a process, starting another whenever one of them ends it; also what came out of reply pipes.

    `start(files)` starts `attacks/runner.mjs` with those descriptors; it has `deadline` seconds for what is left.
    """
    outcomes: dict[str, Outcome] = {}
    replies = b""
    while left := [name for name in names if name not in outcomes]:
        found, begun, code, forged, log = _one_process(start, {"names": left, "at": at}, deadline)
        outcomes |= found
        replies += forged
        if begun is not None:
            outcomes[begun] = Outcome("killed" if code == -9 else "died", code)
        elif not found:
            raise AssertionError(f"no attack ran, code {code}: {log}")
    return outcomes, replies


def _one_process(
    start: Any, request: dict[str, Any], deadline: float
) -> tuple[dict[str, Outcome], str | None, int, bytes, str]:
    stdin, requests = os.pipe()
    output, stdout = os.pipe()
    replies, reply_pipe = os.pipe()
    child: Child = start([stdin, stdout, stdout, reply_pipe])
    for end in (stdin, stdout, reply_pipe):
        os.close(end)
    with suppress(BrokenPipeError):
        os.write(requests, json.dumps(request).encode())
    os.close(requests)
    printed, forged = _drained(output, replies, time.monotonic() + deadline)
    try:
        code = child.wait(1 if printed.ended else 0.01)
    except TimeoutError:
        child.kill()
        code = child.wait()
    found, begun = _read(printed.text)
    return found, begun, code, forged, printed.text[-1000:]


@dataclass
class _Printed:
    text: str
    ended: bool


def _drained(output: int, replies: int, deadline: float) -> tuple[_Printed, bytes]:
    """Both pipes to their ends, or to the deadline; of long output only lines that the runner wrote are kept."""
    lines: list[bytes] = []
    rest, forged, open_ends = b"", b"", {output, replies}
    while open_ends and (ready := select.select(list(open_ends), [], [], max(0, deadline - time.monotonic()))[0]):
        for end in ready:
            chunk = os.read(end, 1 << 16)
            if not chunk:
                open_ends.discard(end)
            elif end == replies:
                forged += chunk
            else:
                *whole, rest = (rest + chunk).split(b"\n")
                rest = rest[:1000] if not rest.startswith(b"\x1e") else rest
                lines += [line for line in whole if line.startswith(b"\x1e")] or whole[:20]
    for end in (output, replies):
        os.close(end)
    return _Printed(b"\n".join([*lines, rest]).decode(errors="replace"), not open_ends), forged


def _read(printed: str) -> tuple[dict[str, Outcome], str | None]:
    """The outcomes, and the attack that was begun and not ended."""
    outcomes: dict[str, Outcome] = {}
    begun: str | None = None
    for line in printed.split("\n"):
        if not line.startswith("\x1e"):
            continue
        record = json.loads(line[1:])
        if "begun" in record:
            begun = record["begun"]
        else:
            outcomes[record["name"]] = Outcome(record["outcome"], record["evidence"])
            begun = None
    return outcomes, begun

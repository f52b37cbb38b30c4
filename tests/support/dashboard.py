"""The head of a Ray cluster as far as jobs are concerned: its HTTP interface, with jobs that end as a test wants."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

BEGAN = 1_796_018_315_072
"""Milliseconds since 1970."""


@dataclass
class Dashboard:
    """A server in a thread of its own. New jobs are at once in the state `outcome`, which has an exit code or None."""

    outcome: tuple[str, int | None] = ("RUNNING", None)
    log: str = "it said\nthis\n"
    token: str | None = None
    stops: bool = True
    """Whether jobs end that are asked to."""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    bodies: list[str] = field(default_factory=list[str])
    """What was sent with submissions."""

    def __enter__(self) -> Self:
        dashboard = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer("")

            def do_POST(self) -> None:
                self.answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

            def answer(self, body: str) -> None:
                status, value = dashboard.answer(self.command, self.path, body, self.headers.get("Authorization"))
                content = value.encode() if isinstance(value, str) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def end(self, job: str, status: str, exit_code: int | None) -> None:
        self.jobs[job] |= {"status": status, "driver_exit_code": exit_code, "end_time": BEGAN + 90_000}

    def answer(self, method: str, path: str, body: str, authorization: str | None) -> tuple[int, Any]:
        if self.token and authorization != f"Bearer {self.token}":
            return (403, "Forbidden: Invalid") if authorization else (401, "Unauthorized: Missing authentication token")
        match method, path.strip("/").split("/")[1:]:
            case "GET", ["version"]:
                return 200, {"version": "4", "ray_version": "2.60.0", "ray_commit": "", "session_name": ""}
            case "GET", ["jobs"]:
                return 200, list(self.jobs.values())
            case "POST", ["jobs"]:
                return self._submitted(body)
            case "GET", ["jobs", _, "logs"]:
                return 200, {"logs": self.log}
            case "POST", ["jobs", job, "stop"]:
                if self.stops:
                    self.end(job, "STOPPED", None)
                return 200, {"stopped": True}
            case _:
                return 404, "Not Found"

    def _submitted(self, body: str) -> tuple[int, Any]:
        self.bodies.append(body)
        asked = json.loads(body)
        name, (status, code) = asked["submission_id"], self.outcome
        if name in self.jobs:
            return 500, f"Traceback\nValueError: Job with submission_id {name} already exists. Please use another."
        self.jobs[name] = {
            "type": "SUBMISSION",
            "submission_id": name,
            "status": "RUNNING",
            "entrypoint": asked["entrypoint"],
            "metadata": asked["metadata"],
            "runtime_env": asked["runtime_env"],
            "start_time": BEGAN,
        }
        if status != "RUNNING":
            self.end(name, status, code)
        return 200, {"job_id": name, "submission_id": name}

"""The command that drives a run, started as often as it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Driver:
    """One command. `ended` holds its exit code; `asked_to_stop` is when SIGTERM was sent."""

    process: subprocess.Popen[bytes]
    out: Path
    started: float = field(default_factory=time.monotonic)
    asked_to_stop: float | None = None
    killed: bool = False
    passed: bool = False
    """Another one has taken over from it."""
    asleep: bool = False

    def poll(self) -> int | None:
        return self.process.poll()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def said(self) -> str:
        return self.out.with_suffix(".err").read_text(encoding="utf-8", errors="replace")

    def answer(self) -> str:
        return self.out.read_text(encoding="utf-8")


@dataclass
class Command:
    """`trunchray run` with a config; `options` are those of all its calls."""

    config: Path
    options: list[str]
    environ: dict[str, str]
    started: int = 0

    def start(self, *options: str) -> Driver:
        self.started += 1
        out = self.config.with_name(f"{self.config.stem}-{self.started:03d}.out")
        command = [sys.executable, "-m", "trunchray.cli.main", "run", str(self.config), *self.options, *options]
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            process = subprocess.Popen(
                [*command, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=os.environ | self.environ,
                start_new_session=True,  # Ctrl-C is for us alone
            )
        return Driver(process, out)

"""Installing npm packages with Deno: no scripts run, and only the network settings of the user are passed on.

It needs the network, which the walls of sandboxed processes never leave open, so it runs outside of them. No code of
authors takes part in it, and of their files it is given none but those that were written anew for it.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trunchray.adapters.sandbox.deno import binary, install_environment
from trunchray.adapters.scratch import scratch

_TIME_LIMIT = 600  # seconds
_progress = re.compile(r"(Download|Initialize|Installed|Reused|Downloaded|Unsupported|\+*$)")


@dataclass(frozen=True)
class Outcome:
    """How an installation ended. `said` is the end of what Deno said, without progress, credentials and the folder."""

    done: bool
    said: str


def install_packages(folder: Path, *, frozen: bool) -> Outcome:
    """Install what the package.json files in `folder` ask for, and leave a `deno.lock` there.

    `frozen` wants the `deno.lock` that is there already, and nothing else. No install script runs, of any package.

    Raises:
        UsageError: Deno is not installed.
    """
    with scratch() as home:
        command = [binary(), "install", "--node-modules-dir=auto", *(["--frozen"] if frozen else [])]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=install_environment(home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(done=False, said=f"it took more than {_TIME_LIMIT} s")
    return Outcome(done.returncode == 0, _readable(done.stderr, folder))


def _readable(text: str, folder: Path) -> str:
    lines = [line.strip() for line in text.splitlines() if not _progress.match(line)]
    told = " ".join(line for line in lines if line).replace(f"{folder}/", "").removeprefix("error: ")
    return re.sub(r"(?<=//)[^/@\s]+@", "", told)[-500:]

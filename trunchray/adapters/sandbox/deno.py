"""The JavaScript runtime: where it is, and how it is called without any permission."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version as package_version
from pathlib import Path

from deno import find_deno_bin

from trunchray.adapters.sandbox.launcher import libraries
from trunchray.adapters.sandbox.walls import Walls
from trunchray.errors import UsageError

HOSTS = Path(__file__).parents[2] / "sandbox_host"
"""The JavaScript that runs inside Deno."""

SANDBOX_ENVIRONMENT: Mapping[str, str] = {
    "DENO_DIR": "/dev/null/x",  # no cache, no localStorage, nothing on disk
    "DENO_NO_UPDATE_CHECK": "1",
    "LC_ALL": "en_US.UTF-8",
    "NO_COLOR": "1",
    "TZ": "UTC",
}
"""All that sandboxed code could see of an environment, the same on every machine."""

_PASSED_ON = (
    "ALL_PROXY",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "HOME",  # npm's own configuration names the registry
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "NPM_CONFIG_REGISTRY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
)


@cache
def binary() -> str:
    """The path of the Deno that pip installed.

    Raises:
        UsageError: it is missing from this environment.
    """
    try:
        return find_deno_bin()
    except FileNotFoundError as e:
        raise UsageError(f"the Deno runtime is not installed (looked for {e}); run `pip install 'deno>=2.9,<3'`") from e


def deno_version() -> str:
    """For example "2.9.8"."""
    return package_version("deno")


def sandbox_command(host: str, reply_pipe: int, *, heap_mb: int, young_mb: int | None = None) -> list[str]:
    """The command that runs `sandbox_host/<host>` without permissions; it may write to its reply pipe alone.

    `reply_pipe` is the number of an inherited file descriptor, the write end of a pipe. With `young_mb`, the whole heap
    is collected each time that many megabytes of new objects are full, and at no other time part of it.
    """
    flags = [f"--max-old-space-size={heap_mb}", "--disallow-code-generation-from-strings"]
    if young_mb is not None:
        flags += [f"--min-semi-space-size={young_mb}", f"--max-semi-space-size={young_mb}", "--gc-global"]
        # The old objects alone ask for a collection when there are seven times those that the last one left.
        flags += ["--heap-growing-percent=600"]
    return [
        binary(),
        "run",
        "--quiet",
        "--no-prompt",
        # Without these three, a dynamic import of `npm:` or of some web addresses is a way out.
        "--no-remote",
        "--no-npm",
        "--cached-only",
        "--no-config",
        "--no-lock",
        "--ignore-env",
        f"--allow-write=/dev/fd/{reply_pipe}",
        f"--v8-flags={','.join(flags)}",
        str(HOSTS / host),
        str(reply_pipe),
    ]


def sandbox_walls(readable: tuple[str, ...] = (), *, data_bytes: int, resident_bytes: int, cpu_seconds: int) -> Walls:
    """The walls around Deno: it may run itself, read our JavaScript and what is `readable`, and write nothing."""
    program = os.path.realpath(binary())
    return Walls(
        execute=(program, *libraries(program)),
        read=("/etc/ld.so.cache", str(HOSTS), *readable),
        data_bytes=data_bytes,
        resident_bytes=resident_bytes,
        cpu_seconds=cpu_seconds,
    )


def install_environment(home: Path) -> dict[str, str]:
    """A clean environment for `deno install`: proxies, certificates and registry are the user's, nothing else is.

    `home` is an empty directory for Deno's cache.
    """
    passed = {name: os.environ[name] for name in _names(_PASSED_ON) if name in os.environ}
    defaults = {"DENO_TLS_CA_STORE": "system,mozilla"}
    return {**defaults, **passed, "DENO_DIR": str(home), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}


def _names(names: tuple[str, ...]) -> list[str]:
    return [*names, *(name.lower() for name in names)]

"""Where a benchmark's sources came from, as far as git can tell."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from trunchray.core.release import ReleaseSource
from trunchray.frontends.benchmark.site import Site

_SUBMODULE = re.compile(r"^160000 ", re.MULTILINE)


def source_of(site: Site) -> ReleaseSource:
    """The remote, commit and state of the checkout around a benchmark; without git or a checkout, only the config."""
    if site.source is not None:
        return site.source
    commit = _git(site, "rev-parse", "HEAD")
    if commit is None:
        return ReleaseSource(config=site.config)
    remote = _git(site, "config", "--get", "remote.origin.url")
    return ReleaseSource(
        remote=without_credentials(remote) if remote else None,
        commit=commit,
        dirty=_is_dirty(site),
        config=site.config,
    )


def _is_dirty(site: Site) -> bool | None:
    """Whether the checkout differs from its commit; None when that cannot be told without running its programs."""
    filters = _filters(site)
    # A submodule has a configuration of its own, which could name programs, too: nobody looks into it.
    changes = _git(site, "status", "--porcelain", "--ignore-submodules=dirty", settings=filters)
    files = _git(site, "ls-files", "--stage")
    if changes is None or files is None or filters is None:
        return None
    return True if changes else None if _SUBMODULE.search(files) else False


def _filters(site: Site) -> dict[str, str] | None:
    """Settings that take the place of the filters that the checkout itself names; None when git cannot tell them."""
    listed = _git(site, "config", "--list", "--show-scope", "--name-only", "-z")
    if listed is None:
        return None
    words = listed.split("\0")
    named = [name for scope, name in zip(words[::2], words[1::2], strict=False) if scope not in ("system", "global")]
    drivers = {name.rpartition(".")[0] for name in named if name.startswith("filter.")}
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{driver}.{key}": value for driver in sorted(drivers) for key, value in values.items()}


def without_credentials(remote: str) -> str | None:
    """A remote's address without user names, passwords and tokens.

    None for a folder of this machine, and for what is no address.
    """
    if "://" not in remote:
        host, colon, path = remote.partition(":")
        return f"{host.rpartition('@')[2]}:{path}" if colon and "/" not in host else None
    try:
        parts = urlsplit(remote)
    except ValueError:
        return None
    if parts.scheme == "file":
        return None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _git(site: Site, *arguments: str, settings: Mapping[str, str] | None = None) -> str | None:
    """What a git command prints; None when there is no git, no checkout, or it fails.

    Hooks, file-system monitors and transports are off, because they are programs that the checkout names.
    """
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    off = {"GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=site.root,
            env=environment | off | as_environment(settings or {}),
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


def as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of git as environment variables, which win over those of any file."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found

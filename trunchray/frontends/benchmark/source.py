"""Where a benchmark's sources came from, as far as git can tell."""

from __future__ import annotations

import os
import subprocess
from urllib.parse import urlsplit, urlunsplit

from trunchray.core.release import ReleaseSource
from trunchray.frontends.benchmark.site import Site


def source_of(site: Site) -> ReleaseSource:
    """The remote, commit and state of the checkout around a benchmark; without git or a checkout, only the config."""
    if site.source is not None:
        return site.source
    commit = _git(site, "rev-parse", "HEAD")
    if commit is None:
        return ReleaseSource(config=site.config)
    remote = _git(site, "config", "--get", "remote.origin.url")
    changes = _git(site, "status", "--porcelain")
    return ReleaseSource(
        remote=without_credentials(remote) if remote else None,
        commit=commit,
        dirty=None if changes is None else bool(changes),
        config=site.config,
    )


def without_credentials(remote: str) -> str | None:
    """A remote's address without user names, passwords and tokens; None for a folder of this machine."""
    if "://" not in remote:
        host, colon, path = remote.partition(":")
        return f"{host.rpartition('@')[2]}:{path}" if colon and "/" not in host else None
    parts = urlsplit(remote)
    if parts.scheme == "file":
        return None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _git(site: Site, *arguments: str) -> str | None:
    """What a git command prints; None when there is no git, no checkout, or it fails.

    Hooks and file-system monitors are off, because they are programs that the checkout names.
    """
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            command,
            cwd=site.root,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()

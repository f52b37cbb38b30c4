"""`deno.lock`: what Deno installed, and the lockfile of authors who use Deno."""

from __future__ import annotations

import json
import re
from typing import Any

from trunchray.frontends.benchmark.dependencies.lock import Lock, LockRefused, Release, hashes

_key = re.compile(r"(?P<name>@?[^@]+)@(?P<version>[^_]+)")
"""`ai@6.0.100_zod@4.1.8`: what follows the version are the peers that it was linked to."""


def resolved_packages(content: bytes) -> dict[Release, str]:
    """The packages in a `deno.lock`, each with its hash.

    Raises:
        LockRefused: it holds modules from elsewhere than the npm registry.
    """
    data: Any = json.loads(content)
    for section in ("jsr", "remote"):
        if data.get(section):
            raise LockRefused(f"holds modules of {section!r}; only packages of the npm registry are installed")
    found: dict[Release, str] = {}
    for key, entry in data.get("npm", {}).items():
        match = _key.match(key)
        if match is None:
            raise LockRefused(f"{key!r} is not a package and its version; run `deno install` again")
        found[match["name"], match["version"]] = entry.get("integrity", "")
    return found


def read_deno_lock(content: bytes) -> Lock:
    """The lock in a `deno.lock` of an author.

    Raises:
        LockRefused: it is of another version, or holds modules from elsewhere than the npm registry.
    """
    version = json.loads(content).get("version")
    if version not in ("4", "5"):
        raise LockRefused(f"has version {version!r}, and only 4 and 5 are honoured; run `deno install` with Deno 2")
    packages = {release: hashes(digest) for release, digest in resolved_packages(content).items()}
    return Lock(f"deno/{version}", packages, ("deno.lock", content))

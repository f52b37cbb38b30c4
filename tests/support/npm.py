"""Real npm packages, installed once for a whole test run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from trunchray.adapters.sandbox.deno import binary, install_environment


def installed(directory: Path, dependencies: dict[str, str], *, cache: Path) -> Path:
    """`directory` with a `package.json` and the `node_modules` that it asks for; the packages stay in `cache`."""
    directory.mkdir(parents=True)
    package = {"name": "packages", "private": True, "type": "module", "dependencies": dependencies}
    (directory / "package.json").write_text(json.dumps(package))
    subprocess.run(
        [binary(), "install", "--quiet", "--node-modules-dir=auto"],
        cwd=directory,
        env=install_environment(cache),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=120,
    )
    return directory

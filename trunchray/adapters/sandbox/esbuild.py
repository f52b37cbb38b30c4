"""Bundling TypeScript and JavaScript: one self-contained module for each entry, the same bytes wherever it is made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trunchray.adapters.sandbox.esbuild_binary import ESBUILD_VERSION, esbuild_binary
from trunchray.adapters.sandbox.metafile import Metafile
from trunchray.core.digest import sha256
from trunchray.errors import AuthoringError, Problem

__all__ = ["ESBUILD_VERSION", "Bundle", "bundle"]

_TIME_LIMIT = 60  # seconds
_FLAGS = (
    "--bundle",
    "--format=esm",
    "--platform=node",
    "--target=es2022",
    "--charset=utf8",
    "--legal-comments=none",
    '--define:process.env.NODE_ENV="production"',
    "--log-level=error",
    "--log-limit=0",
    "--color=false",
)
_error = re.compile(r"✘ \[ERROR\] (?P<message>.*)\n(?:\n    (?P<path>.+?):(?P<row>\d+):\d+:\n)?")
_unresolved = re.compile(r'Could not resolve "(.*)"')


@dataclass(frozen=True)
class Bundle:
    """One module with everything that it imports.

    `inputs` are the files it is made of, relative to the repository root; `builtins` the modules of Node that it still
    imports, such as "node:crypto".
    """

    code: bytes
    sha256: str
    inputs: tuple[str, ...]
    builtins: tuple[str, ...]


def bundle(entries: Sequence[str], *, working_dir: Path, root: Path) -> dict[str, Bundle]:
    """Bundle modules, named relative to `working_dir`; everything they are made of must lie in `root`.

    Raises:
        AuthoringError: a module is missing, has a syntax error, or imports something that cannot be had.
        UsageError: esbuild is not there and could not be fetched.
    """
    names = list(dict.fromkeys(entries))
    missing = [Problem(name, 0, "", "no such file") for name in names if not (working_dir / name).is_file()]
    if missing:
        raise AuthoringError(missing)
    if not names:
        return {}
    # esbuild reports paths without symbolic links.
    working_dir, root = Path(os.path.realpath(working_dir)), Path(os.path.realpath(root))
    with tempfile.TemporaryDirectory(prefix="trunchray-bundle-") as folder:
        _run(names, working_dir, Path(folder))
        meta = Metafile(json.loads((Path(folder) / "meta.json").read_bytes()), working_dir=working_dir, root=root)
        problems = [problem for number in range(len(names)) for problem in meta.problems(f"{number}.js")]
        if problems:
            raise AuthoringError(problems)
        return {name: _bundle(meta, Path(folder) / f"{number}.js") for number, name in enumerate(names)}


def _run(names: Sequence[str], working_dir: Path, output: Path) -> None:
    """Write `<number of the entry>.js` for each, and `meta.json`."""
    try:
        done = subprocess.run(
            _command(names, output),
            cwd=working_dir,
            env={},  # NODE_PATH and the like would change what is found
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise AuthoringError([Problem(names[0], 0, "", f"bundling took more than {_TIME_LIMIT} s")]) from e
    if done.returncode != 0:
        problems = list(_problems(done.stderr))
        raise AuthoringError(problems or [Problem(names[0], 0, "", f"bundling failed: {done.stderr.strip()[-500:]}")])


def _command(names: Sequence[str], output: Path) -> list[str]:
    """The one place to put a wall in front of esbuild, which reads whatever the sources name."""
    # "./" because a bare name could be a package or an option.
    entries = [f"{number}=./{name}" for number, name in enumerate(names)]
    return [str(esbuild_binary()), *_FLAGS, f"--outdir={output}", f"--metafile={output / 'meta.json'}", *entries]


def _problems(errors: str) -> Iterator[Problem]:
    for found in _error.finditer(errors):
        yield Problem(found["path"] or "", int(found["row"] or 0), "", _explained(found["message"]))


def _explained(message: str) -> str:
    unresolved = _unresolved.fullmatch(message)
    if unresolved is None:
        return message
    name = unresolved[1]
    if name.startswith((".", "/")):
        return f"{message}: there is no such file"
    if name.startswith(("npm:", "jsr:", "http:", "https:")):
        return f"{message}: modules are not loaded from the network; declare the package in package.json"
    return f"{message}: the package is not installed; declare it in package.json"


def _bundle(meta: Metafile, file: Path) -> Bundle:
    code = _required(meta.required(file.name)) + file.read_bytes()
    return Bundle(code, sha256(code), meta.inputs(file.name), meta.builtins(file.name))


def _required(names: Sequence[str]) -> bytes:
    """The `require` that esbuild's output looks for, for CommonJS code that asks for modules of Node."""
    if not names:
        return b""
    imports = "".join(f"import * as __builtin{n} from {json.dumps(name)};\n" for n, name in enumerate(names))
    table = ", ".join(f"{json.dumps(name)}: __builtin{n}.default" for n, name in enumerate(names))
    return f"{imports}const require = ((modules) => (name) => modules[name])({{ {table} }});\n".encode()

"""Bundling TypeScript and JavaScript: one self-contained module for each entry, the same bytes wherever it is made."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trunchray.adapters.sandbox.esbuild_binary import ESBUILD_VERSION, esbuild_binary
from trunchray.adapters.sandbox.launcher import Completed, run
from trunchray.adapters.sandbox.metafile import Metafile
from trunchray.adapters.sandbox.namespaces import ENTRY, as_modules
from trunchray.adapters.sandbox.walls import Walls
from trunchray.adapters.scratch import scratch
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
    "--log-level=warning",
    "--log-limit=0",
    "--color=false",
)
_STRICT = ("--log-override:import-is-undefined=error",)
_error = re.compile(
    r"(?:✘ \[ERROR\]|(?P<warning>▲ \[WARNING\])) (?P<message>.*)\n"
    r"(?:\n    (?P<path>.+?):(?P<row>\d+):\d+:\n"
    r"(?:.*?│ (?P<line>.*)\n.*?╵ (?P<before> *)(?P<mark>~+))?)?"
)
_unresolved = re.compile(r'Could not resolve "(.*)"')
_about_config = re.compile(r"(.*) \[tsconfig\.json\]")
_unreadable = re.compile(r'Cannot read (?:file|directory) "(.*)": permission denied')


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
    with scratch() as folder:
        try:
            return _bundles(names, working_dir, root, Path(os.path.realpath(folder)))
        except TimeoutError as e:
            raise AuthoringError([Problem(names[0], 0, "", f"bundling took more than {_TIME_LIMIT} s")]) from e


def _bundles(names: Sequence[str], working_dir: Path, root: Path, folder: Path) -> dict[str, Bundle]:
    done = _run(names, working_dir, root, folder)
    if done.code != 0:
        errors = done.output.decode(errors="replace")
        problems = list(_problems(errors, working_dir, root))
        raise AuthoringError(problems or [Problem(names[0], 0, "", f"bundling failed: {errors.strip()[-500:]}")])
    meta = Metafile(json.loads((folder / "meta.json").read_bytes()), working_dir=working_dir, root=root)
    outputs = [f"{number}.js" for number in range(len(names))]
    problems = [problem for output in outputs for problem in meta.problems(output)]
    if problems:
        raise AuthoringError(problems)
    codes = _without_unused([(folder / output).read_bytes() for output in outputs])
    return {name: _bundle(meta, *made) for name, made in zip(names, zip(outputs, codes, strict=True), strict=True)}


def _without_unused(codes: Sequence[bytes]) -> list[bytes]:
    """The bundles without what only objects of exports lead to, and nothing uses."""
    # The names of folders are in what esbuild makes of them, so they must not depend on the other bundles.
    modules = {sha256(code): files for code in codes if (files := as_modules(code.decode()))}
    if not modules:
        return list(codes)
    with scratch() as folder:
        root = Path(os.path.realpath(folder))
        for name, files in modules.items():
            (root / name).mkdir()
            for file, text in files.items():
                (root / name / file).write_bytes(text.encode())
        less = _bundled_again(list(modules), root)
    return [less.get(sha256(code), code) for code in codes]


def _bundled_again(folders: Sequence[str], root: Path) -> dict[str, bytes]:
    """What is made of the modules in each folder.

    Nothing where the code changes an object of exports, or asks for what it lacks: with the object as it is, a message
    about that names it.
    """
    with scratch() as folder:
        output = Path(os.path.realpath(folder))
        if _run([f"{name}/{ENTRY}" for name in folders], root, root, output, *_STRICT).code == 0:
            return {name: (output / f"{number}.js").read_bytes() for number, name in enumerate(folders)}
    if len(folders) == 1:
        return {}
    return {name: code for folder in folders for name, code in _bundled_again([folder], root).items()}


def _run(names: Sequence[str], working_dir: Path, root: Path, output: Path, *flags: str) -> Completed:
    """Write `<number of the entry>.js` for each, and `meta.json`. Raises TimeoutError."""
    command = [*_command(names, output), *flags]
    # An environment with NODE_PATH and the like would change what is found.
    return run(command, cwd=str(working_dir), env={}, walls=_walls(command[0], root, output), timeout=_TIME_LIMIT)


def _walls(program: str, root: Path, output: Path) -> Walls:
    """Sources may name any file, and esbuild reads it: with these, only what is in the repository."""
    return Walls(
        execute=(program,),
        read=(str(root),),
        write=(str(output),),
        data_bytes=4 << 30,
        resident_bytes=4 << 30,
        cpu_seconds=4 * _TIME_LIMIT,
        file_bytes=1 << 30,
        open_files=1024,
    )


def _command(names: Sequence[str], output: Path) -> list[str]:
    # "./" because a bare name could be a package or an option.
    entries = [f"{number}=./{name}" for number, name in enumerate(names)]
    return [str(esbuild_binary()), *_FLAGS, f"--outdir={output}", f"--metafile={output / 'meta.json'}", *entries]


def _problems(errors: str, working_dir: Path, root: Path) -> Iterator[Problem]:
    yield from _config_problems(errors)
    for found in _error.finditer(errors):
        path, message = found["path"] or "", found["message"]
        if found["warning"]:
            continue
        target = _target(message, working_dir, path)
        if target is None or target.is_relative_to(root):
            yield Problem(path, int(found["row"] or 0), "", _explained(message))
        elif path:
            what = f"imports {_written(found)!r}: lies outside the repository; copy what you need into it"
            yield Problem(path, int(found["row"]), "", what)
        elif (working_dir / (name := _named(message))).is_file():
            yield Problem(name, 0, "", "lies outside the repository; copy the file into it")


def _config_problems(errors: str) -> Iterator[Problem]:
    """What esbuild only warns of, but what can be why it did not find something."""
    told = [found for found in _error.finditer(errors) if found["warning"]]
    if any(_package_like(found["message"]) for found in _error.finditer(errors)):
        for found in told:
            if about := _about_config.fullmatch(found["message"]):
                yield Problem(found["path"] or "tsconfig.json", int(found["row"] or 0), "", about[1])


def _package_like(message: str) -> bool:
    unresolved = _unresolved.fullmatch(message)
    return bool(unresolved) and not unresolved[1].startswith((".", "/"))


def _target(message: str, working_dir: Path, importer: str) -> Path | None:
    """The file that could not be had, where it really is; None when the message is about none."""
    if (found := _unreadable.fullmatch(message)) is not None:
        return Path(os.path.realpath(working_dir / found[1]))
    if (found := _unresolved.fullmatch(message)) is not None and found[1].startswith((".", "/")):
        return Path(os.path.realpath(working_dir / Path(importer).parent / found[1]))
    return None


def _written(found: re.Match[str]) -> str:
    """How the source names what the error is about: esbuild underlines it."""
    start = len(found["before"])
    return found["line"][start : start + len(found["mark"])].strip("\"'`")


def _named(message: str) -> str:
    """The path in a message, relative to the working directory."""
    return os.path.normpath(message.split('"')[1])


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


def _bundle(meta: Metafile, output: str, code: bytes) -> Bundle:
    code = _required(meta.required(output)) + code
    return Bundle(code, sha256(code), meta.inputs(output), meta.builtins(output))


def _required(names: Sequence[str]) -> bytes:
    """The `require` that esbuild's output looks for, for CommonJS code that asks for modules of Node."""
    if not names:
        return b""
    imports = "".join(f"import * as __builtin{n} from {json.dumps(name)};\n" for n, name in enumerate(names))
    table = ", ".join(f"{json.dumps(name)}: __builtin{n}.default" for n, name in enumerate(names))
    return f"{imports}const require = ((modules) => (name) => modules[name])({{ {table} }});\n".encode()

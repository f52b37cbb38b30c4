"""Where a benchmark is: its directory, its config, and the repository around it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trunchray.core.release import ReleaseSource
from trunchray.errors import UsageError

CONFIG_NAMES = tuple(f"benchmark.config.{extension}" for extension in ("ts", "mts", "js", "mjs"))
MODULE_SUFFIXES = (".ts", ".mts", ".js", ".mjs")


@dataclass(frozen=True)
class Site:
    """`directory` is the benchmark directory and `root` the repository around it, both absolute and without links.

    `config` is the config's name in `directory`, None when there is none. `source` says where the files came from, None
    when only the checkout around them can tell.
    """

    directory: Path
    root: Path
    config: str | None
    source: ReleaseSource | None = None


def is_benchmark(path: Path) -> bool:
    """Whether a folder looks like a benchmark's sources, and not like a release, which has neither of these."""
    return any((path / name).exists() for name in (*CONFIG_NAMES, "evals")) and not (path / "release.json").exists()


def locate(path: Path, config: str | None = None) -> Site:
    """The benchmark at `path`: a directory or a config file. `config` names a config inside a directory.

    Raises:
        UsageError: there is no benchmark at `path`, or more than one config.
    """
    if not path.exists():
        raise UsageError(f"{str(path)!r} does not exist; give a benchmark's directory or its config file")
    if path.is_dir():
        chosen = _only_config(path) if config is None else _named_config(path, config)
    elif config is not None:
        raise UsageError(f"{str(path)!r} is a file, so --config {config!r} cannot be inside it; give one of the two")
    else:
        chosen = _config_file(path)
    directory = (path if chosen is None else chosen.parent).resolve()
    return Site(directory, repository_root(directory), None if chosen is None else chosen.name)


def _only_config(directory: Path) -> Path | None:
    found = [name for name in CONFIG_NAMES if (directory / name).is_file()]
    if len(found) > 1:
        raise UsageError(
            f"{str(directory)!r} holds several configs: {', '.join(found)}; remove all but one, or choose with --config"
        )
    return directory / found[0] if found else None


def _named_config(directory: Path, config: str) -> Path:
    relative = PurePosixPath(config)
    if not config or relative.is_absolute() or ".." in relative.parts:
        raise UsageError(f"--config {config!r} must be a relative path inside {str(directory)!r}")
    chosen = directory / relative
    if not chosen.is_file():
        raise UsageError(f"--config {config!r}: there is no such file in {str(directory)!r}")
    if chosen.suffix not in MODULE_SUFFIXES:
        raise UsageError(f"--config {config!r} must be a .ts, .mts, .js or .mjs file")
    return chosen


def _config_file(path: Path) -> Path:
    if path.name not in CONFIG_NAMES:
        raise UsageError(
            f"{str(path)!r} is not a benchmark config; give a directory, or a file named {', '.join(CONFIG_NAMES)}"
        )
    return path


def repository_root(directory: Path) -> Path:
    """The nearest ancestor with `.git`, else the nearest with `package.json`, else the directory itself."""
    for marker in (".git", "package.json"):
        for ancestor in (directory, *directory.parents):
            if (ancestor / marker).exists():
                return ancestor
    return directory

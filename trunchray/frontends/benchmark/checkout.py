"""A benchmark in a git repository, fetched at one commit: `git+https://host/repository.git@<commit>#<path>`.

Nothing that the repository names is run: no hooks, submodules, filters (so no LFS) or other transports. What is fetched
is removed at the end.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from trunchray.adapters.scratch import scratch
from trunchray.core.release import ReleaseSource
from trunchray.errors import UsageError
from trunchray.frontends.benchmark.site import Site, locate
from trunchray.frontends.benchmark.source import as_environment, without_credentials

PREFIX = "git+"

_FETCH_TIME, _CHECKOUT_TIME = 900, 300  # seconds
_FORM = "write git+https://host/repository.git@<commit>#<path>, with all 40 digits of the commit"
_OFF = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.sshCommand": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.version": "2",  # any commit can be asked for, not only the tips of branches
    "submodule.recurse": "false",
}
_KEPT = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
_missing = re.compile(
    r"not our ref|no such remote ref|couldn't find remote ref|unadvertised object|bad object|not a commit"
)


@dataclass(frozen=True)
class GitAddress:
    """`url` may hold credentials and is never shown; `path` is relative to the repository, "" for its root."""

    url: str
    commit: str
    path: str

    @property
    def shown(self) -> str:
        return without_credentials(self.url) or self.url

    @property
    def name(self) -> str:
        """The last part of the URL, which is what `git clone` would call the folder."""
        last = urlsplit(self.url).path.rstrip("/").rpartition("/")[2].removesuffix(".git")
        return last if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", last) else "repository"


def is_git_address(target: object) -> bool:
    return isinstance(target, str) and target.startswith(PREFIX)


def git_address(text: str) -> GitAddress:
    """The parts of a git address.

    Raises:
        UsageError: it is not one, names another transport than https and file, or is not pinned to a commit.
    """
    address, _, path = text.removeprefix(PREFIX).partition("#")
    host, slash, tail = address.rpartition("/")
    last, at, commit = tail.partition("@")
    url = f"{host}{slash}{last}"
    scheme = url.partition("://")[0]
    if re.search(r"[\x00-\x20\x7f\\]", text) or "://" not in url or not _path_of(url).strip("/"):
        raise UsageError(f"{_hidden(text)!r} is not the address of a benchmark in git; {_FORM}")
    if scheme not in ("https", "file"):
        raise UsageError(f"{_hidden(text)!r} asks for {scheme!r}, and only https and file are allowed; {_FORM}")
    if scheme == "file" and urlsplit(url).netloc not in ("", "localhost"):
        host = urlsplit(url).netloc.rpartition("@")[2]
        raise UsageError(
            f"{_hidden(text)!r} names the host {host!r}, which git would ignore; write git+file:///folder@<commit> for "
            "a repository of this machine, or git+https:// for another's"
        )
    _check_pinned(text, url, commit if at else "")
    if path.startswith("/") or ".." in path.split("/"):
        raise UsageError(f"path {path!r} of {_hidden(text)!r} must be relative to the repository and stay inside it")
    return GitAddress(url, commit, path.strip("/"))


def _path_of(url: str) -> str:
    """The path of a URL; "" when it has none, or is no URL."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _check_pinned(text: str, url: str, commit: str) -> None:
    """Raises `UsageError` unless `commit` can only be one commit."""
    if re.fullmatch(r"[0-9a-f]{40}", commit):
        return
    if re.fullmatch(r"[0-9a-fA-F]{40}", commit):
        raise UsageError(f"{_hidden(text)!r} has a commit in upper case; write {commit.lower()}, as git does")
    what = f"{commit!r} is a branch, a tag or part of a commit" if commit else "it names no commit"
    shown = without_credentials(url) or url
    raise UsageError(
        f"{_hidden(text)!r} is not pinned: {what}, and could be other code tomorrow; {_FORM} "
        f"(`git ls-remote {shown} {commit or 'HEAD'}` prints it)"
    )


@contextmanager
def opened(target: Path | str, config: str | None = None) -> Generator[Site]:
    """The benchmark at a path or a git address, for the time of the block.

    Raises:
        UsageError: there is none.
    """
    if isinstance(target, str) and is_git_address(target):
        with checked_out(git_address(target), config) as site:
            yield site
    else:
        yield locate(Path(target), config)


@contextmanager
def checked_out(address: GitAddress, config: str | None = None) -> Generator[Site]:
    """The benchmark at an address; its files are there until the end of the block.

    Raises:
        UsageError: git is missing, or the repository, the commit or the path cannot be had.
    """
    with scratch() as folder:
        root = folder.resolve() / address.name
        _fetch(address, root)
        target = root / address.path
        if not os.path.exists(target) or not target.resolve().is_relative_to(root):  # noqa: PTH110 - never raises
            raise UsageError(f"there is no {address.path!r} in {address.shown} at commit {address.commit}")
        try:
            site = locate(target, config)
        except UsageError as e:
            raise UsageError(str(e).replace(str(root), address.shown)) from e
        source = ReleaseSource(
            remote=without_credentials(address.url), commit=address.commit, dirty=False, config=site.config
        )
        yield replace(site, source=source)


def _fetch(address: GitAddress, root: Path) -> None:
    ours = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    _git(address, None, ours, _CHECKOUT_TIME, "init", "--quiet", "--template=", "--", str(root))
    # The user's own settings hold for the network alone: proxies, certificates, credential helpers. The URL goes
    # through the environment, because everybody on this machine can see arguments.
    network = {"GIT_ALLOW_PROTOCOL": urlsplit(address.url).scheme, **as_environment({"remote.origin.url": address.url})}
    fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "origin", address.commit)
    _git(address, root, network, _FETCH_TIME, *fetch)
    # Without the user's settings, line ends and filters are the same for everybody.
    _git(address, root, ours, _CHECKOUT_TIME, "checkout", "--quiet", "--detach", address.commit)


def _git(address: GitAddress, folder: Path | None, extra: Mapping[str, str], limit: int, *arguments: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    inherited.pop("SSH_ASKPASS", None)
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    switches = [part for name, value in _OFF.items() for part in ("-c", f"{name}={value}")]
    try:
        done = subprocess.run(
            ["git", *switches, *arguments],
            cwd=folder,
            env={**inherited, **quiet, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            check=False,
        )
    except FileNotFoundError as e:
        raise UsageError("git is not installed, and compiling from a git address needs it; install git") from e
    except OSError as e:
        raise UsageError(
            f"git cannot be run ({e.strerror}), and compiling from a git address needs it; see whether `git --version` "
            "works here"
        ) from e
    except subprocess.TimeoutExpired as e:
        raise UsageError(f"fetching {address.shown} took more than {limit} s; clone it and compile the clone") from e
    if done.returncode:
        raise UsageError(_explained(address, done.stderr))


def _explained(address: GitAddress, errors: str) -> str:
    if _missing.search(errors):
        return f"{address.shown} has no commit {address.commit}; see whether it was pushed"
    told = [
        line.removeprefix("fatal: ").strip() for line in errors.splitlines() if line.startswith(("fatal:", "error:"))
    ]
    reason = _hidden((told or [errors.strip()])[0].replace(address.url, address.shown))[:300]
    return f"cannot fetch {address.shown}: {reason}; see whether the address is right and you may read it"


def _hidden(text: str) -> str:
    """Without user names, passwords and tokens in URLs."""
    return re.sub(r"(?<=://)[^/\s]*@(?=[^/\s]*/)", "", text)

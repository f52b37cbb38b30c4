"""From what a command is given to a release: one that is stored, or one that is compiled now."""

from __future__ import annotations

from trunchray.adapters.releases import StoredRelease, open_release
from trunchray.adapters.store import Store
from trunchray.frontends.benchmark.checkout import is_git_address
from trunchray.frontends.benchmark.compiler import compile_to


def is_release(target: str) -> bool:
    """Whether a path or URI is that of a release, and not of a benchmark that has to be compiled."""
    return not is_git_address(target) and ("://" in target or Store(target).exists("release.json"))


def release_at(target: str, *, compiled_to: str) -> StoredRelease:
    """The release at a path or URI; a benchmark, in a folder or in git, is compiled, and its release kept.

    It is kept below `compiled_to` under a name that its content gives it. So it does no harm when what was wanted of
    it turns out to be refused: the next command that compiles the same finds it whole and as it is.

    Raises:
        UsageError: there is no benchmark at `target`.
        AuthoringError: the benchmark is refused.
        ReleaseError: the release is missing or damaged.
    """
    return open_release(target) if is_release(target) else compile_to(target, compiled_to)

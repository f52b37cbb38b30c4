"""Files on GitHub that never change: one file, at a commit or a tag."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from trunchray.core.inside import inside

_OTHER = (
    "is not the URL of a file on GitHub; write it as "
    "https://github.com/<owner>/<repository>/blob/<commit or tag>/<path>"
)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MOVING = frozenset({"main", "master", "head", "develop", "trunk"})
"""Names that everybody gives to branches."""


class PinnedFile(NamedTuple):
    """A file of a repository; `ref` is a commit of 40 hex digits, or else a tag."""

    owner: str
    repository: str
    ref: str
    path: str

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def location(self) -> str:
        """Where GitHub serves its content, below the host for raw files. A branch is never found there.

        A tag is asked for as `refs/tags/<tag>`, which the page "Getting permanent links to files" of GitHub's
        documentation does not promise, so a tag that is not found is refused like a missing file.
        """
        ref = self.ref if _is_commit(self.ref) else f"refs/tags/{self.ref}"
        return quote(f"{self.owner}/{self.repository}/{ref}/{self.path}")


def is_address(entry: str) -> bool:
    """Whether an entry is meant as an address, and not as a path."""
    return "://" in entry


def read_address(address: str) -> PinnedFile:
    """The file that an address of GitHub names.

    Raises:
        ValueError: it is another address, or names a branch, whose files change.
    """
    parts = urlsplit(address)
    if (parts.scheme, parts.netloc) != ("https", "github.com") or parts.query or parts.fragment or "?" in address:
        raise ValueError(_OTHER)
    match parts.path.split("/", 5):
        case ["", owner, repository, "blob", ref, path] if (
            path and _NAME.fullmatch(owner) and _NAME.fullmatch(repository)
        ):
            if (inner := inside(unquote(path))) == ".":
                raise ValueError(_OTHER)
            return PinnedFile(owner, repository, _fixed(unquote(ref)), inner)
        case _:
            raise ValueError(_OTHER)


def _fixed(ref: str) -> str:
    """The ref, if it can only ever mean one commit."""
    if ref.casefold() in _MOVING:
        raise ValueError(f"names the branch {ref!r}, whose files change; pin it to a commit or a tag")
    if re.fullmatch("[0-9a-fA-F]{7,39}", ref):
        raise ValueError(f"names the commit {ref!r} by some of its digits; write all 40")
    if not _NAME.fullmatch(ref) or ref in {".", ".."}:
        raise ValueError(f"names {ref!r}, which is neither a commit nor a tag without '/'")
    return ref.lower() if _is_commit(ref) else ref


def _is_commit(ref: str) -> bool:
    return re.fullmatch("[0-9a-fA-F]{40}", ref) is not None

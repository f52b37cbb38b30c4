"""Fetches files that are pinned on GitHub."""

from __future__ import annotations

from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, build_opener

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from trunchray.core.pinned_file import PinnedFile
from trunchray.errors import UsageError

RAW = "https://raw.githubusercontent.com"
"""The host of file contents."""
LARGEST = 50_000_000
"""Bytes of a file."""
PATIENCE = 60
"""Seconds without a byte."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class _NoRedirect(HTTPRedirectHandler):
    """A file that is pinned is where it is."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:  # noqa: PLR0917 - as it is there
        return None


def fetch(file: PinnedFile, *, raw: str = RAW) -> bytes:
    """The content of a file; `raw` is the host that has it.

    Raises:
        UsageError: it cannot be had, or is too large.
    """
    tries = Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(4),
        wait=wait_random_exponential(multiplier=0.5, max=5),
        reraise=True,
    )
    try:
        return tries(_fetch, f"{raw}/{file.location}")
    except HTTPError as e:
        raise UsageError(f"GitHub answers {e.code} ({e.reason}); is there such a file at {file.ref!r}?") from e
    except (OSError, HTTPException) as e:
        raise UsageError(f"cannot be fetched from GitHub: {e}") from e


def _fetch(url: str) -> bytes:
    try:
        with build_opener(_NoRedirect).open(url, timeout=PATIENCE) as reply:
            content: bytes = reply.read(LARGEST + 1)
    except HTTPError as e:
        e.close()
        raise
    if len(content) > LARGEST:
        raise UsageError(f"is larger than {LARGEST // 1_000_000} MB")
    return content


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, HTTPError):
        return error.code in _PASSING
    return isinstance(error, OSError | HTTPException)

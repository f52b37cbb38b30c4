"""Fetches files that are pinned on GitHub."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse, IncompleteRead
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
LONGEST = 600
"""Seconds for a file, all tries together."""
_PIECE = 1 << 20
"""Bytes that are read at a time, at most."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class _NoRedirect(HTTPRedirectHandler):
    """A file that is pinned is where it is."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:  # noqa: PLR0917 - as it is there
        return None


def fetch(file: PinnedFile, *, raw: str = RAW, clock: Callable[[], float] = time.monotonic) -> bytes:
    """The whole content of a file; `raw` is the host that has it, and `clock` counts seconds from anywhere.

    Raises:
        UsageError: it cannot be had, takes too long, or is too large.
    """
    until = clock() + LONGEST
    tries = Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(4),
        wait=wait_random_exponential(multiplier=0.5, max=5),
        reraise=True,
    )
    try:
        return tries(_fetch, f"{raw}/{file.location}", lambda: clock() > until)
    except HTTPError as e:
        raise UsageError(f"GitHub answers {e.code} ({e.reason}); is there such a file at {file.ref!r}?") from e
    except (OSError, HTTPException) as e:
        raise UsageError(
            f"cannot be fetched from GitHub: {e}; try again, or put a copy beside the case file and name that"
        ) from e


def _fetch(url: str, is_late: Callable[[], bool]) -> bytes:
    try:
        with build_opener(_NoRedirect).open(url, timeout=PATIENCE) as reply:
            return _read(reply, is_late)
    except HTTPError as e:
        e.close()
        raise


def _read(reply: HTTPResponse, is_late: Callable[[], bool]) -> bytes:
    """All of it: a connection that breaks looks like the end to whoever does not compare the length."""
    content = bytearray()
    while piece := reply.read1(_PIECE):
        content += piece
        if len(content) > LARGEST:
            raise UsageError(
                f"is larger than {LARGEST // 1_000_000} MB, which is too much for each attempt; shorten it"
            )
        if is_late():
            raise UsageError(
                f"has not come from GitHub within {LONGEST} seconds; try again, or put a copy beside the case file"
            )
    promised = reply.getheader("Content-Length") or ""
    if promised.isdigit() and len(content) != int(promised):
        raise IncompleteRead(bytes(content), int(promised) - len(content))
    return bytes(content)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, HTTPError):
        return error.code in _PASSING
    return isinstance(error, OSError | HTTPException)

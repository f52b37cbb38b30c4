"""What a provider's refusal means: an HTTP status, headers and a body become a `ProviderError`. Pure.

| status | type | retryable |
| --- | --- | --- |
| 408 | timeout | yes |
| 409, 425 | conflict | yes |
| 429 | rate_limited; quota_exhausted when the account has run out | yes; no |
| 5xx | server_error | yes |
| 401, 403 | authentication | no |
| 402 | quota_exhausted | no |
| 404 | not_found | no |
| 3xx | redirected | no |
| other | bad_request; context_length when the prompt is too long | no |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from trunchray.adapters.models import json_text
from trunchray.adapters.models.wire import Clean
from trunchray.errors import ProviderError

SHOWN = 300
"""Characters of a provider's message that are recorded."""

_TYPES = {
    401: "authentication",
    402: "quota_exhausted",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    425: "conflict",
    429: "rate_limited",
}
_RETRYABLE = frozenset({"timeout", "conflict", "rate_limited", "server_error"})
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"})
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_TOO_LONG = re.compile(
    r"(maximum|max)\S* context|context (length|window|size)|(prompt|input) is too long|too many tokens"
    r"|(input|prompt)s?\b.{0,40}\btokens?\b.{0,80}\b(exceed|must be <=|maximum)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal as the provider sent it; `code` is its own word for the reason, or ""."""

    status: int
    code: str
    message: str
    retry_after: float | None = None

    @property
    def type(self) -> str:
        if self.code in _QUOTA:
            return "quota_exhausted"
        if self.status >= 500:
            return "server_error"
        if self.status < 400:
            return "redirected"
        if self.status in _TYPES:
            return _TYPES[self.status]
        too_long = self.code == "context_length_exceeded" or _TOO_LONG.search(self.message)
        return "context_length" if too_long else "bad_request"

    @property
    def retryable(self) -> bool:
        return self.type in _RETRYABLE

    @property
    def of_the_key(self) -> bool:
        """Another key might be served."""
        return self.type in ("authentication", "quota_exhausted")

    @property
    def filtered(self) -> bool:
        """The provider's content filter stopped the prompt: that is an answer of the model as served, not an error."""
        if not 400 <= self.status < 500:
            return False
        return self.code in _FILTERED or (self.code == "invalid_prompt" and "usage policy" in self.message)

    def error(self, host: str, hint: str = "") -> ProviderError:
        """`hint` is added for a refused key: where the key came from."""
        kind = self.type
        text = f"{host} answered {self.status}" + (f": {self.message}" if self.message else "")
        if kind == "redirected":
            text += " (redirects are not followed: set base_url to where it leads)"
        elif kind == "authentication":
            text += hint
        return ProviderError(text, type=kind, retryable=self.retryable, retry_after=self.retry_after)


def read_refusal(status: int, headers: Mapping[str, str], body: bytes, clean: Clean, *, now: float) -> Refusal:
    """`headers` look up names in any case; `now` is Unix time in seconds, for a Retry-After that is a date."""
    code, message = _code_and_message(body)
    return Refusal(status, code, _short(message, clean), retry_after(headers, now=now))


def read_error(error: object, clean: Clean) -> Refusal:
    """The `error` that some gateways put into a reply with status 200; its code is then a status, or unknown (500)."""
    status = error.get("code") if isinstance(error, dict) else None
    code, message = _of_error(error)
    known = status if isinstance(status, int) and 400 <= status < 600 else 500
    return Refusal(known, code, _short(message, clean))


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait, at least 0; None when the provider named no usable time.

    `retry-after-ms` (milliseconds) goes before `Retry-After`, which is a number of seconds or an HTTP date (RFC 9110).
    """
    exact = _seconds(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    value = headers.get("Retry-After")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _seconds(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"\s*[0-9]{1,9}(\.[0-9]{0,9})?\s*", value):
        return None
    return float(value)


def _short(message: str, clean: Clean) -> str:
    return " ".join(clean(message).split())[:SHOWN]


def _code_and_message(body: bytes) -> tuple[str, str]:
    try:
        value: Any = json_text.parse(body)
    except ValueError:
        return "", body.decode("utf-8", "replace")
    if not isinstance(value, dict):
        return "", body.decode("utf-8", "replace")
    return _of_error(value.get("error") or value)


def _of_error(error: object) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "", str(error)
    codes = [error.get("code"), error.get("type")]
    message = error.get("message") or error.get("detail") or json_text.dump(error).decode()
    return next((code for code in codes if isinstance(code, str) and code), ""), str(message)

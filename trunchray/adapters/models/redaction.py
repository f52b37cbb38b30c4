"""Takes credentials out of what is recorded: the endpoint's keys, and the logins of proxies."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable

from yarl import URL

from trunchray.adapters.models import json_text

_SHORTEST = 8
"""Characters; local servers take keys like "none", which must stay readable in a model's answer."""

_SHORTEST_LOGIN = 4
"""Characters of a part of a proxy's login that is replaced wherever it stands, not only before an "@"."""


class Redaction:
    """The secrets of one client. What comes out is well-formed Unicode."""

    def __init__(self, keys: Iterable[str], proxies: Iterable[str]) -> None:
        secrets = {key: "[key]" for key in keys if key}
        for login in (login for proxy in proxies for login in logins(proxy)):
            secrets[f"{login}@"] = "[proxy login]@"
            if len(login) >= _SHORTEST_LOGIN:
                secrets[login] = "[proxy login]"
        # Longest first: a secret that is part of another must not break it up.
        self._secrets = sorted(secrets.items(), key=lambda item: -len(item[0]))
        self._long = [item for item in self._secrets if len(item[0]) >= _SHORTEST]

    def message(self, text: str) -> str:
        """A message about a failure, without any of the secrets."""
        for secret, shown in self._secrets:
            text = text.replace(secret, shown)
        return json_text.well_formed(text)

    def answer(self, text: str) -> str:
        """What a model said, without the secrets that are long enough to be one."""
        for secret, shown in self._long:
            if secret in text:
                text = text.replace(secret, shown)
        return json_text.well_formed(text)


def logins(proxy: str) -> set[str]:
    """Every form in which the login of a URL is written or sent; a user without a password is a secret by itself.

    Raises:
        ValueError: it is no URL.
    """
    url = URL(proxy)
    if url.raw_user is None and url.raw_password is None:
        return set()
    user, password = url.user or "", url.password or ""
    whole = {url.authority.rpartition("@")[0], url.raw_authority.rpartition("@")[0], f"{user}:{password}"}
    sent = {b64encode(f"{user}:{password}".encode(code, "replace")).decode() for code in ("latin1", "utf-8")}
    alone = {password, url.raw_password or ""} if password else {user, url.raw_user or ""}
    return {text for text in whole | sent | alone if text}

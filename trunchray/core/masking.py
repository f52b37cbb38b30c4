"""Taking credentials out of what a coding tool leaves, by their exact text.

What is not promised: a credential that is encoded, compressed or cut into pieces is other text, and stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

MASKED = "[masked]"
SHORTEST = 8
"""Characters; anything shorter stands in too much other text."""
MOST = 2_000
"""Credentials that are looked for; every one is looked for in every piece."""


class Mask:
    """Some credentials, of which only those of 8 characters and more are looked for, as they are and as JSON has them.

    The first `MOST` of them count, and `left_out` says how many did not.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        found = [secret for secret in dict.fromkeys(secrets) if len(secret) >= SHORTEST and secret != MASKED]
        self.left_out = max(0, len(found) - MOST)
        forms = {form for secret in found[:MOST] for form in _forms(secret)}
        # Longest first: one that is part of another must not break it up.
        self._secrets = sorted(forms, key=lambda form: (-len(form), form))

    @property
    def longest(self) -> int:
        """Bytes of the longest one; 0 where there is none."""
        return len(self._secrets[0]) if self._secrets else 0

    def text(self, text: str) -> str:
        """The same without credentials."""
        return (
            self.content(text.encode(errors="surrogatepass")).decode(errors="surrogatepass") if self.longest else text
        )

    def content(self, content: bytes) -> bytes:
        """The same without credentials; what is not text, because it holds a NUL, keeps its length."""
        if not (seen := self.seen_in(content)):
            return content
        if b"\0" in content:
            return seen.sub(lambda found: b"*" * len(found[0]), content)
        return seen.sub(MASKED.encode(), content)

    def seen_in(self, content: bytes) -> re.Pattern[bytes] | None:
        """What matches the credentials that are in it, the longest first; None where there are none."""
        seen = [re.escape(secret) for secret in self._secrets if secret in content]
        return re.compile(b"|".join(seen)) if seen else None


NOTHING = Mask(())
"""Masks nothing."""


class MaskedStream:
    """The same for bytes that come piece by piece, however a credential is cut."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What can be given on by now: all but an end in which a credential may have begun."""
        if not self._mask.longest:
            return chunk
        held = self._held + chunk
        return self._given_on(held, max(0, len(held) - self._mask.longest + 1))

    def end(self) -> bytes:
        """The rest."""
        return self._given_on(self._held, len(self._held))

    def _given_on(self, held: bytes, most: int) -> bytes:
        """What begins within the first `most` bytes; the rest is held."""
        seen = self._mask.seen_in(held)
        given, done = bytearray(), 0
        for found in seen.finditer(held) if seen else ():
            if found.start() >= most:
                break
            given += held[done : found.start()] + MASKED.encode()
            done = found.end()
        given += held[done:most]
        self._held = held[max(done, most) :]
        return bytes(given)


def _forms(secret: str) -> set[bytes]:
    """How it is written: by itself, and in JSON, with or without what is not ASCII."""
    written = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {form.encode(errors="surrogatepass") for form in written}

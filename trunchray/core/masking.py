"""Taking credentials out of what a coding tool leaves, by their exact text.

As JSON may have it is found, too, whichever letters an encoder escapes, also in JSON that is a text of other JSON. What
is not promised: a credential that is encoded otherwise, compressed or cut into pieces is other text, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import JsonValue

MASKED = "[masked]"
SHORTEST = 8
"""Characters; anything shorter stands in too much other text."""
MOST = 2_000
"""Credentials that are looked for; every one is looked for in every piece."""
LONGEST = 1 << 14
"""Characters, more than keys and tokens have; a stream is held back for some of the longest one's lengths."""

_SLASHES = rb"\\{1,4}"
"""As many as there are before an escaped letter in JSON, or in JSON that is a text of other JSON."""
_FIRST = rb"\\{1,64}"
"""Before the first letter: a part of those that stand there would make a text that is no JSON any more."""
_WIDEST = 9
"""Bytes of an escaped UTF-16 unit, with the most backslashes."""
_SHORT = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_ESCAPE = re.compile(rb"\\+u(?:([dD][89abAB][0-9a-fA-F]{2})\\+u([dD][c-fC-F][0-9a-fA-F]{2})|([0-9a-fA-F]{4}))")
_LETTERS = bytes.maketrans("".join(_SHORT).encode(), "".join(_SHORT.values()).encode())


class Mask:
    """Some credentials, of which only those of 8 characters and more are looked for, as they are and as JSON has them.

    The first `MOST` of no more than `LONGEST` characters count, and `left_out` says how many did not.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        found = [secret for secret in dict.fromkeys(secrets) if len(secret) >= SHORTEST and secret != MASKED]
        counted = [secret for secret in found if len(secret) <= LONGEST][:MOST]
        self.left_out = len(found) - len(counted)
        # Longest first: one that is part of another must not break it up.
        self._secrets = [_Secret(secret) for secret in sorted(counted, key=lambda one: (-len(one), one))]
        self._longest = max((64 + _WIDEST * _units(secret.text) for secret in self._secrets), default=0)

    @property
    def longest(self) -> int:
        """Bytes of the longest one, as long as JSON can make it; 0 where there is none."""
        return self._longest

    def text(self, text: str) -> str:
        """The same without credentials."""
        return (
            self.content(text.encode(errors="surrogatepass")).decode(errors="surrogatepass") if self.longest else text
        )

    def value(self, value: JsonValue) -> JsonValue:
        """The same with all its texts and names masked.

        Raises:
            RecursionError: it is nested too deep.
        """
        if not self.longest:
            return value
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(each) for each in value]
            case dict():
                return {self.text(name): self.value(each) for name, each in value.items()}
            case _:
                return value

    def content(self, content: bytes) -> bytes:
        """The same without credentials; what is not text, because it holds a NUL, keeps its length."""
        if not (seen := self.seen_in(content)):
            return content
        if b"\0" in content:
            return seen.sub(lambda found: b"*" * len(found[0]), content)
        return seen.sub(MASKED.encode(), content)

    def seen_in(self, content: bytes) -> re.Pattern[bytes] | None:
        """What matches the credentials that are in it, the longest first; None where there are none."""
        read = _bare(content) if b"\\" in content else None
        seen = [pattern for secret in self._secrets if (pattern := secret.pattern(content, read))]
        return re.compile(b"|".join(seen)) if seen else None


class _Secret:
    """One credential, and all that it may look like."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = text.encode(errors="surrogatepass")
        self._bare = _bare(self._plain)

    def pattern(self, content: bytes, bare: bytes | None) -> bytes | None:
        """What matches it in a content; None where it is not there. `bare`: that content; None: it has no backslash."""
        plain = content.count(self._plain)
        # The pattern for escaped letters is slow, and what has no escapes in it needs none.
        if bare is None or bare.count(self._bare) <= plain:
            return re.escape(self._plain) if plain else None
        return _any_form(self.text[0], _FIRST) + b"".join(map(_any_form, self.text[1:]))


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
        if len(held) < 2 * self._mask.longest:  # so that each byte is looked at twice, however small the pieces are
            self._held = held
            return b""
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


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def _bare(content: bytes) -> bytes:
    """The same for all forms of a text: without backslashes, and with letters in place of what they stand for."""
    return _ESCAPE.sub(_letter, content).translate(_LETTERS, b"\\")


def _letter(found: re.Match[bytes]) -> bytes:
    high, low, unit = found.groups()
    if unit:
        return chr(int(unit, 16)).encode(errors="surrogatepass")
    return bytes.fromhex((high + low).decode()).decode("utf-16-be").encode()


def _any_form(letter: str, slashes: bytes = _SLASHES) -> bytes:
    """A pattern for one letter, with or without escape; `slashes` match the backslashes of one."""
    units = letter.encode("utf-16-be", errors="surrogatepass")
    escaped = _SLASHES.join(b"u" + _any_case(units[at : at + 2].hex()) for at in range(0, len(units), 2))
    forms = [re.escape(letter.encode(errors="surrogatepass")), slashes + escaped]
    if letter == "\\":
        forms = [slashes, slashes + escaped]
    elif letter in _SHORT or letter in '"/':
        forms.append(slashes + _SHORT.get(letter, letter).encode())
    return b"(?:" + b"|".join(forms) + b")"


def _any_case(digits: str) -> bytes:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits).encode()

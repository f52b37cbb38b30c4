"""Which texts in a file or a variable may be credentials, so that they can be kept out of what is stored.

A file that keeps a tool logged in also holds settings. Words, names of models, numbers and times are no credentials,
unless something like `password` is before them; whatever looks as if nobody had made it up is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

from trunchray.core.credentials import given_secret, set_secret
from trunchray.core.masking import SHORTEST

_TOKEN = re.compile(rf"[^\s\"'`,;{{}}\[\]()<>|\\]{{{SHORTEST},}}")
_LINE = re.compile(
    r"^[ \t\"']*([A-Za-z_][\w.-]*)[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"',;]+)[\"']?[,;]?[ \t]*\r?$", re.MULTILINE
)
"""`name = "value"`, and the like."""
_PLAIN = re.compile(r".{0,7}|\d*|[A-Z]?[a-z]{0,23}(?:[A-Z][a-z]{2,23})*\d{0,4}|[A-Z]{1,23}\d{0,4}")
"""A piece that is short, a number, or words with a number after them."""


def secrets_in(text: str) -> list[str]:
    """What may be credentials in a file's text, each once; those that are named as such come first."""
    return list(dict.fromkeys([*named_in(text), *tokens_in(text)]))


def named_in(text: str) -> list[str]:
    """Those that are named as such."""
    found = (value for name, value in _settings(text) if _is_named(name, value))
    return [secret for secret in dict.fromkeys(found) if len(secret) >= SHORTEST]


def tokens_in(text: str) -> list[str]:
    """Those that look as if nobody had made them up, whatever their names: ids and digests, too."""
    return list(dict.fromkeys(token for _, value in _settings(text, whole=True) for token in _tokens(value)))


def secrets_of(name: str, value: str) -> list[str]:
    """The same for a variable, whose value as a whole counts as well where its name or its look gives it away."""
    whole = [value] if len(value) >= SHORTEST and (given_secret(name, value) or not _is_plain(value)) else []
    return list(dict.fromkeys([*whole, *secrets_in(value)]))


def _is_named(name: str, value: str) -> bool:
    """Whether its name makes it a credential; a `key` alone, whose value is words, is one of a keyboard."""
    return set_secret(name, value) and not (name == "key" and _is_plain(value))


def _settings(text: str, *, whole: bool = False) -> Iterator[tuple[str, str]]:
    """Names and values; `whole` gives all the text where it is not JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        yield from [("", text)] if whole else ((line[1], line[2]) for line in _LINE.finditer(text))
    else:
        yield from _leaves("", found)


def _leaves(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    pending: list[tuple[str, JsonValue]] = [(name, value)]
    while pending:
        name, value = pending.pop()
        match value:
            case str():
                yield name, value
            case list():
                pending += [(name, each) for each in reversed(value)]
            case dict():
                pending += reversed(value.items())
            case _:
                pass


def _tokens(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        for each in (token, token.partition("=")[2], token.rpartition(":")[2]):
            if len(each) >= SHORTEST and not _is_plain(each):
                yield each


def _is_plain(token: str) -> bool:
    """Whether it is words and numbers alone."""
    return all(_PLAIN.fullmatch(piece) for piece in re.split(r"[\W_]+", token))

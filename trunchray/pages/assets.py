"""The files that pages are made of."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from trunchray.pages.html import Html


@cache
def asset(path: str) -> Html:
    """The text of a file below `trunchray/pages`, which is trusted."""
    return Html(files("trunchray.pages").joinpath(path).read_text(encoding="utf-8"))


@cache
def fingerprint(path: str) -> str:
    """The file as a source that a content security policy may name, when the file is all that an element holds."""
    return f"'sha256-{b64encode(sha256(asset(path).encode()).digest()).decode()}'"

"""Markup that is safe by construction: text is escaped, unless it is markup already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from string import Template

from pydantic import JsonValue

_IN_SCRIPTS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


class Html(str):
    """Markup. Only this module and files of the package make it from plain text."""

    __slots__ = ()


def markup(content: str) -> Html:
    """Text as markup; markup as it is."""
    return content if isinstance(content, Html) else Html(escape(content))


def prose(text: str) -> Html:
    """A sentence, in which `backticks` enclose code."""
    parts = text.split("`")
    return joined(tag("code", part) if number % 2 else part for number, part in enumerate(parts))


def joined(contents: Iterable[str]) -> Html:
    return Html("".join(map(markup, contents)))


def tag(name: str, *contents: str, **attributes: str | float | None) -> Html:
    """An element; its contents are text or markup.

    Attributes lose an underscore at their end and have hyphens for the others: `class_`, `data_value`. True stands for
    an attribute without a value; one that is False or None is left out.
    """
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{said}>{''.join(map(markup, contents))}</{name}>")


def _attribute(key: str, value: str | float | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def data_block(id: str, value: JsonValue) -> Html:
    """Data that scripts of the page can read: JSON in ASCII, in which nothing can end the element."""
    content = json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPTS)
    return Html(f'<script type="application/json" id="{escape(id)}">{content}</script>')


def filled(template: str, values: Mapping[str, Html]) -> Html:
    """A template of the package with `${name}` replaced by markup."""
    return Html(Template(template).substitute(values))

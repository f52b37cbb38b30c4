"""What the installed litellm knows of providers and prices, read from the files it comes with.

It is not imported: that takes seconds and hundreds of megabytes, which a driver has no use for.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from trunchray.adapters.models import json_text
from trunchray.core.agent import Price
from trunchray.core.digest import sha256

_PRICES = "model_prices_and_context_window_backup.json"
_PROVIDERS = "provider_endpoints_support_backup.json"
_CHAT = frozenset({"chat", "responses", "completion"})


class _Table(NamedTuple):
    entries: dict[str, Any]
    source: str


def installed() -> bool:
    """Whether litellm could be imported here."""
    return _folder() is not None


@cache
def providers() -> frozenset[str]:
    """The names of the providers it knows; none when it is not installed."""
    folder = _folder()
    known: Any = json_text.parse((folder / _PROVIDERS).read_bytes()) if folder else {}
    return frozenset(known.get("providers", ()))


def price(provider: str, name: str) -> Price | None:
    """The list price of a provider's model, its first tier; None when the table does not say, or is not there.

    Found by the name that is asked for, never by the one in a reply, which any server may choose.
    """
    table = _table()
    if table is None:
        return None
    entry = table.entries.get(f"{provider}/{name}") or table.entries.get(name)
    if not isinstance(entry, dict) or not _of(entry, provider):
        return None
    read, written = _per_million(entry, "input_cost_per_token"), _per_million(entry, "output_cost_per_token")
    if read is None or written is None:
        return None
    return Price(
        input=read,
        output=written,
        cached_input=_per_million(entry, "cache_read_input_token_cost"),
        reasoning=_per_million(entry, "output_cost_per_reasoning_token"),
        source=table.source,
    )


def _folder() -> Path | None:
    found = find_spec("litellm")
    return Path(found.origin).parent if found and found.origin else None


@cache
def _table() -> _Table | None:
    folder = _folder()
    if folder is None:
        return None
    content = (folder / _PRICES).read_bytes()
    entries: Any = json_text.parse(content)
    return _Table(entries, f"litellm {version('litellm')} sha256:{sha256(content)}")


def _of(entry: dict[str, Any], provider: str) -> bool:
    """A price is the provider's own: the same name costs something else elsewhere. Tables name some with a suffix."""
    owner = entry.get("litellm_provider")
    same = isinstance(owner, str) and (owner == provider or owner.startswith((f"{provider}-", f"{provider}_")))
    return same and entry.get("mode") in _CHAT


def _per_million(entry: dict[str, Any], name: str) -> float | None:
    """Dollars per million tokens, without the noise that multiplying a binary fraction adds."""
    cost = entry.get(name)
    if not isinstance(cost, int | float) or isinstance(cost, bool) or cost < 0:
        return None
    return float(f"{cost * 1e6:.9g}")

"""Addresses of decision models, and the environment variables that hold their keys."""

from __future__ import annotations

from collections.abc import Mapping

from trunchray.adapters.models.keys import Key

OFFICIAL = "https://api.typesafe.ai/v1/systemone"
GATEWAY = "https://ai-gateway.vercel.sh/typesafe/v1/systemone"
ANYWHERE = "SYSTEM_ONE_API_KEY"
"""Read last at the two addresses above, and alone at any other."""

_OWN: Mapping[str, tuple[str, ...]] = {
    OFFICIAL: ("TYPESAFE_API_KEY",),
    GATEWAY: ("AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
}


def key_names(url: str, named: str | None = None) -> tuple[str, ...]:
    """The environment variables that may hold the key, first to last; `named` replaces them all.

    The keys of the official endpoint and of the gateway are sent there and nowhere else.
    """
    return (named,) if named else (*_OWN.get(url, ()), ANYWHERE)


def find_key(names: tuple[str, ...], environ: Mapping[str, str]) -> Key | None:
    """The first of these variables whose value can be sent in a header; None when there is none."""
    found = (Key(name, environ.get(name, "").strip()) for name in names)
    return next((key for key in found if key.text and _can_be_sent(key.text)), None)


def _can_be_sent(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text

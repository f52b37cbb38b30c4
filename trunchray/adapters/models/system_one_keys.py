"""Where decision models are reached, and under which names the environment holds their keys."""

from __future__ import annotations

from collections.abc import Mapping

from trunchray.adapters.models.keys import Key

OFFICIAL = "https://api.typesafe.ai/v1/systemone"
GATEWAY = "https://ai-gateway.vercel.sh/typesafe/v1/systemone"
ANYWHERE = "SYSTEM_ONE_API_KEY"
"""What is looked for last, whoever is asked, and alone when that is neither of the two above."""

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
    """The first of these that is set, to what a header can carry; None when none is."""
    found = (Key(name, environ.get(name, "").strip()) for name in names)
    return next((key for key in found if key.text and _can_be_sent(key.text)), None)


def _can_be_sent(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text

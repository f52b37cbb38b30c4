"""Why no further trial of a model begins, and what lets it go on."""

from __future__ import annotations

from collections.abc import Mapping

FORESEEN = frozenset({"budget", "pilot", "cancelled"})
"""Reasons that somebody asked for; all others are news."""
REMEDIES: Mapping[str, str] = {
    "authentication": "the same command asks it again, with the key that it finds then",
    "quota_exhausted": "the same command asks it again",
    "budget": "a larger budget continues it",
    "pilot": "the command without --pilot continues it",
    "uncounted": "the same command asks it again, counting anew; with --allow-unpriced such answers count as free",
}


def remedy(reason: str) -> str:
    """What to do about a model that is closed for a reason."""
    return REMEDIES.get(reason, "what is owed is asked again by the same command")

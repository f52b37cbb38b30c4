"""Moments as text."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """The moment in UTC to the second, as ISO 8601 with a Z; one without a time zone is of this machine's."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

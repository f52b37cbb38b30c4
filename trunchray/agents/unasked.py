"""Where only stored answers are graded, nobody is asked."""

from __future__ import annotations

from typing import NoReturn

from trunchray.core.case import CaseInput
from trunchray.errors import ProviderError


class Unasked:
    """Stands in the place of an agent that may not be asked: it needs no key, no client and no network."""

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> NoReturn:
        """Refuse.

        Raises:
            ProviderError: always.
        """
        raise ProviderError(f"case {case_id!r}: no model is asked here, only stored answers are graded", type="unasked")

    async def close(self) -> None:
        """Nothing is held."""

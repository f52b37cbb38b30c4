"""Which trials somebody wants to see, and in what order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError

from trunchray.core.frozen import Frozen, first_problem
from trunchray.core.run import Attempts
from trunchray.core.trial import Outcome
from trunchray.errors import UsageError

PAGE = 50
"""Trials on one page."""

SortKey = Literal["case", "model", "outcome", "score", "tokens", "cost", "seconds"]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


class TrialSearch(Frozen):
    """What all the wanted trials have in common; None and the empty text leave it open."""

    run: str | None = None
    model: str | None = None
    eval: str | None = None
    outcome: Outcome | None = None
    attempt: Attempts | None = None
    text: Annotated[str, AfterValidator(_without_nul)] = Field(default="", max_length=1000)
    """Stands in the case's id, the answer or the message, in capital or small letters."""
    sort: SortKey = "case"
    order: Literal["up", "down"] = "up"
    page: int = Field(default=1, ge=1, le=1_000_000)

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """The search in the query of a URL, whatever else is in there; fields left empty are not given.

        Raises:
            UsageError: a field has a value that it cannot have.
        """
        given: dict[str, Any] = {name: query[name] for name in cls.model_fields if query.get(name)}
        try:
            return cls.model_validate(given)
        except ValidationError as e:
            raise UsageError(first_problem(e)) from e

    @property
    def offset(self) -> int:
        """How many trials come before the page."""
        return (self.page - 1) * PAGE

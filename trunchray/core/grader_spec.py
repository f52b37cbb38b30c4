"""Who grades the attempts of a skill eval by their rubrics, as data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from trunchray.core.agent import ModelAgent
from trunchray.core.frozen import Frozen
from trunchray.core.harness import Harness


class ModelGrader(Frozen):
    """A model that is shown the attempt, and cannot look for itself."""

    kind: Literal["model"] = "model"
    model: ModelAgent
    shown: int = Field(default=160_000, ge=2_000)
    """Characters of an attempt that it is shown."""

    @property
    def asked(self) -> dict[str, JsonValue]:
        """What makes two of them the same or not, as JSON."""
        return {"kind": self.kind, "shown": self.shown, "model": self.model.asked}


class HarnessGrader(Frozen):
    """A coding tool that looks at a copy of the attempt in a clean room of its own."""

    kind: Literal["harness"] = "harness"
    harness: Harness
    timeout: float = Field(default=600, gt=0, allow_inf_nan=False)
    """Seconds that one run of it may take."""

    @property
    def asked(self) -> dict[str, JsonValue]:
        """What makes two of them the same or not, as JSON: not what its login needs."""
        harness = self.harness.model_dump(mode="json", include={"command", "env"})
        return {"kind": self.kind, "timeout": self.timeout, "harness": harness}


GraderSpec = Annotated[ModelGrader | HarnessGrader, Field(discriminator="kind")]

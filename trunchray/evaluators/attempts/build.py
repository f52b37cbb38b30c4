"""From who grades, as data, to a grader."""

from __future__ import annotations

from trunchray.adapters.models.connect import load_clients
from trunchray.core.grader_spec import GraderSpec, HarnessGrader, ModelGrader
from trunchray.evaluators.attempts.grader import AttemptGrader
from trunchray.evaluators.attempts.harness import HarnessBackend
from trunchray.evaluators.attempts.model import ModelBackend


def build_grader(spec: GraderSpec | None, run: str | None = None) -> AttemptGrader:
    """A grader that has asked nobody yet; None is for one that nobody helps. Not in a thread that runs an event loop.

    `run` is as `AttemptGrader` says.

    Raises:
        UsageError: the model cannot be asked.
    """
    match spec:
        case None:
            return AttemptGrader(run=run)
        case ModelGrader():
            load_clients([spec.model])
            return AttemptGrader(ModelBackend(spec), run)
        case HarnessGrader():
            return AttemptGrader(HarnessBackend(spec), run)

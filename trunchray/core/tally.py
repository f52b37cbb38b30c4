"""Counted rows → report, one row at a time."""

from __future__ import annotations

from collections.abc import Mapping

from trunchray.core.figures import figures
from trunchray.core.group import Group
from trunchray.core.report import CountedRow, EvalReport, ModelReport, Planned, PlannedModel, Report
from trunchray.errors import StoreError

NOT_REACHED = "not reached"


class Tally:
    """Counts rows against a plan. Rows may come in any order, each trial's only once; a row takes about 40 bytes."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._groups = {(model.name, eval_id): Group() for model in planned.models for eval_id in model.trials}
        self._numbers: dict[str, int] = {}

    def add(self, row: CountedRow) -> None:
        """Count one row.

        Raises:
            StoreError: the row belongs to a model or an eval that was never planned.
        """
        group = self._groups.get((row.agent, row.eval_id))
        if group is None:
            raise StoreError(
                f"run {self._planned.run!r} holds a row of model {row.agent!r} and eval {row.eval_id!r}, "
                "which its plan does not have; was run.json replaced?"
            )
        group.add(row, self._numbers.setdefault(row.case_id, len(self._numbers)))

    def report(self, not_run_reasons: Mapping[str, str] | None = None) -> Report:
        """The report so far. `not_run_reasons` says by model name why trials are missing ("budget", "cancelled")."""
        planned, reasons = self._planned, not_run_reasons or {}
        models = tuple(self._model(model, reasons.get(model.name, NOT_REACHED)) for model in planned.models)
        not_run = sum(model.not_run for model in models)
        return Report(
            run=planned.run,
            release_digest=planned.release_digest,
            title=planned.title,
            attempts=planned.attempts,
            complete=not_run == 0,
            planned=sum(model.planned for model in models),
            passed=sum(model.passed for model in models),
            failed=sum(model.failed for model in models),
            error=sum(model.error for model in models),
            not_run=not_run,
            models=models,
        )

    def _model(self, model: PlannedModel, reason: str) -> ModelReport:
        groups = [self._groups[model.name, eval_id] for eval_id in model.trials]
        attempts = self._planned.attempts
        owed = zip(model.trials.items(), groups, strict=True)
        evals = tuple(
            EvalReport(eval_id=eval_id, **dict(figures([group], planned=trials, attempts=attempts)))
            for (eval_id, trials), group in owed
        )
        total = figures(groups, planned=sum(model.trials.values()), attempts=attempts)
        return ModelReport(
            name=model.name,
            agent_digest=model.agent_digest,
            model=model.model,
            not_run_reason=reason if total.not_run else None,
            evals=evals,
            **dict(total),
        )

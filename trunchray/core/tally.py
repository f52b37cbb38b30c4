"""Counted rows → report, one row at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import combinations

from trunchray.core.contrast import SHOWN, ModelPair, few_clusters, with_adjusted
from trunchray.core.disagreement import Disagreement, Disagreements, Finding
from trunchray.core.figures import figures
from trunchray.core.group import CaseTotal, Group
from trunchray.core.report import CountedRow, EvalReport, ModelReport, Planned, PlannedModel, Report
from trunchray.core.sheet import Sheet
from trunchray.errors import StoreError

NOT_REACHED = "not reached"
NO_ANSWER = "no stored answer"


class Tally:
    """Counts rows against a plan. Rows may come in any order, each trial's only once; a row takes about 40 bytes."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._groups = {(model.name, eval_id): Group() for model in planned.models for eval_id in model.trials}
        self._numbers: dict[str, int] = {}
        self._began: datetime | None = None
        self._ended: datetime | None = None

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

    def during(self, began: datetime, ended: datetime) -> None:
        """Note when some of the rows were made, UTC; the report tells the whole span."""
        self._began = min(self._began or began, began)
        self._ended = max(self._ended or ended, ended)

    def report(self, closed: Mapping[str, str] | None = None, *, otherwise: str = NOT_REACHED) -> Report:
        """The report so far; `closed` says by model name why trials are missing, `otherwise` says it of the others."""
        planned, reasons = self._planned, closed or {}
        models = tuple(self.model(model, reasons.get(model.name, otherwise)) for model in planned.models)
        not_run = sum(model.not_run for model in models)
        pairs, disagreements = self._between_models()
        return Report(
            run=planned.run,
            release_digest=planned.release_digest,
            title=planned.title,
            attempts=planned.attempts,
            complete=not_run == 0,
            started_at=self._began,
            ended_at=self._ended,
            planned=sum(model.planned for model in models),
            passed=sum(model.passed for model in models),
            failed=sum(model.failed for model in models),
            error=sum(model.error for model in models),
            not_run=not_run,
            notes=self._notes(),
            models=models,
            comparisons=pairs,
            disagreements=disagreements,
        )

    def sheet(self, model: PlannedModel, evals: Mapping[str, str] | None = None) -> Sheet:
        """What one model did with each case.

        `evals` gives the eval of each planned case; without it only those with a verdict are known to be planned.
        """
        ids = list(self._numbers)
        totals: dict[str, CaseTotal] = {}
        errors: Counter[str] = Counter()
        known: dict[str, str] = {}
        for eval_id in model.trials:
            group = self._groups[model.name, eval_id]
            found = {ids[number]: total for number, total in group.by_case().items()}
            totals |= found
            errors.update(ids[number] for number in group.error_cases)
            known |= dict.fromkeys(found, eval_id)
        return Sheet(known if evals is None else evals, totals, errors)

    def _between_models(self) -> tuple[tuple[ModelPair, ...], Disagreements]:
        """Every two models on the cases that both were graded on, and the cases on which they differ most."""
        planned = self._planned
        if len(planned.models) < 2:
            return (), Disagreements()
        from trunchray.core.columns import Column, Order, Shared, disagreed  # noqa: PLC0415 - NumPy and SciPy take a second

        sheets = [self.sheet(model) for model in planned.models]
        order = Order.of({case: eval_id for sheet in sheets for case, eval_id in sheet.evals.items()})
        clusters = order.clusters(planned.sources)
        columns = [(model, Column.of(sheet, order.cases)) for model, sheet in zip(planned.models, sheets, strict=True)]
        pairs: list[ModelPair] = []
        for (one, first), (other, second) in combinations(columns, 2):
            both = Shared.of(order, first, second)
            left_out = sum(one.trials.values()) // planned.attempts - both.cases
            found = both.contrast(left_out=left_out, clusters=clusters, limit=SHOWN)
            pairs.append(ModelPair(first=one.name, second=other.name, **dict(found)))
        places = disagreed([column for _, column in columns]).tolist()
        cases = tuple(self._disagreement(order.cases[place], sheets) for place in places[:SHOWN])
        return tuple(with_adjusted(pairs)), Disagreements(count=len(places), cases=cases)

    def _disagreement(self, case: str, sheets: Sequence[Sheet]) -> Disagreement:
        names = [model.name for model in self._planned.models]
        findings = [_finding(name, case, sheet) for name, sheet in zip(names, sheets, strict=True)]
        eval_id = next(sheet.evals[case] for sheet in sheets if case in sheet.evals)
        return Disagreement(case_id=case, eval_id=eval_id, findings=tuple(findings))

    def _notes(self) -> tuple[str, ...]:
        """A warning when figures over all evals stand on few clusters."""
        names = {eval_id for model in self._planned.models for eval_id in model.trials}
        found = few_clusters(len({self._planned.sources.get(name, name) for name in names}))
        return (found,) if found else ()

    def model(self, model: PlannedModel, reason: str = NOT_REACHED) -> ModelReport:
        """The figures of one model so far; `reason` says why trials are missing, if some are."""
        groups = [self._groups[model.name, eval_id] for eval_id in model.trials]
        attempts = self._planned.attempts
        owed = zip(model.trials.items(), groups, strict=True)
        evals = tuple(
            EvalReport(
                eval_id=eval_id, **dict(figures([group], planned=trials, attempts=attempts, priced=model.priced))
            )
            for (eval_id, trials), group in owed
        )
        sources = [self._planned.sources.get(eval_id, eval_id) for eval_id in model.trials]
        planned = sum(model.trials.values())
        total = figures(groups, planned=planned, attempts=attempts, clusters=sources, priced=model.priced)
        return ModelReport(
            name=model.name,
            agent_digest=model.agent_digest,
            model=model.model,
            not_run_reason=reason if total.not_run else None,
            evals=evals,
            **dict(total),
        )


def _finding(model: str, case: str, sheet: Sheet) -> Finding:
    total = sheet.totals.get(case)
    return Finding(
        model=model,
        graded=total.attempts if total else 0,
        passed=total.passed if total else 0,
        score=total.score / total.attempts if total else None,
        errors=sheet.errors.get(case, 0),
    )

"""What came of evals of agent skills, in a terminal."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

from rich.text import Text

from trunchray.cli.screen import Line, fitted, one_line
from trunchray.cli.tables import errors_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from trunchray.frontends.skill.summary import AttemptResult, ExecutionSummary
    from trunchray.frontends.skill.triggers import QueryResult, TriggersResult

FEW = 10
"""Attempts that are told one by one."""
_COLUMNS = [("attempts", 0), ("ok", 0), ("failed", 0), ("rubric", 1), ("mean s", 2), ("mean tokens", 3), ("tools", 4)]


def show_attempts(console: Console, summary: ExecutionSummary) -> None:
    """A line for each config, then the attempts that did not end well or could not be graded."""
    console.print(f"{summary.mode}  (run {summary.run_id})")
    configs = list(dict.fromkeys(result.config for result in summary.results))
    lines = [_config(config, [each for each in summary.results if each.config == config]) for config in configs]
    console.print(fitted(console, "config", _COLUMNS, lines))
    if summary.skipped:
        console.print(f"nothing ran, because no harness is recorded: {summary.harness}", style="yellow")
    bad = [result for result in summary.results if result.status not in {"ok", "skipped"} or result.grading_error]
    for result in bad[:FEW]:
        why = result.grading_error or (result.error_tail.splitlines() or [""])[-1]
        console.print(one_line(f"  {result.case_dir}: {_status(result)}: {why}"), style="red")
    if len(bad) > FEW:
        console.print(f"  … and {len(bad) - FEW:,} more", style="red")
    console.print(f"run folder  {summary.run_dir}")


def show_queries(console: Console, result: TriggersResult, folder: str) -> None:
    """A line for each query: whether it is as it should be, and how often the skill was loaded."""
    counts = result.summary
    console.print(f"{result.skill_name} triggers  (run {result.run_id})")
    columns = [("should", 0), ("loaded", 0), ("rate", 1)]
    console.print(fitted(console, "query", columns, [_query(each) for each in result.results]))
    said = f"{counts.passed:,} of {counts.total:,} as they should be, {counts.failed:,} not"
    unmeasured = f", {counts.unmeasured:,} not measured" if counts.unmeasured else ""
    look = "" if result.settled else "; fewer than 3 runs of each are a quick look"
    console.print(f"{said}{unmeasured}{look}")
    reasons = Counter(error for each in result.results for error in each.errors)
    for reason, times in reasons.most_common(FEW):
        console.print(one_line(f"  {times:,} × {reason}"), style="red")
    if result.status == "skipped":
        console.print(f"nothing ran, because no harness is recorded: {result.harness}", style="yellow")
    console.print(f"run folder  {folder}")


def _config(name: str, results: Sequence[AttemptResult]) -> Line:
    ok = [result for result in results if result.status == "ok"]
    failed = sum(result.status not in {"ok", "skipped"} for result in results)
    graded = [result.grading for result in results if result.grading]
    lines = sum(each.total for each in graded)
    rubric = f"{sum(each.passed for each in graded) / lines:.0%} of {lines:,}" if lines else "–"
    cells: list[str | Text] = [f"{len(results):,}", f"{len(ok):,}", errors_cell(failed), rubric]
    tokens = [each.tokens for each in ok if each.tokens_reported]
    calls = [sum(each.tool_calls.values()) for each in ok if each.understood]
    return Line(name, [*cells, _mean([each.elapsed_s for each in ok], 1), _mean(tokens, 0), _mean(calls, 1)])


def _mean(values: Sequence[float], decimals: int) -> str:
    """A dash where there is none."""
    return f"{fmean(values):,.{decimals}f}" if values else "–"


def _status(result: AttemptResult) -> str:
    return "grading_error" if result.grading_error else result.status


def _query(result: QueryResult) -> Line:
    rate = "–" if result.trigger_rate is None else f"{result.trigger_rate:.0%}"
    should = "load" if result.should_trigger else "not load"
    style = {True: "", False: "red", None: "yellow"}[result.passed]
    return Line(one_line(result.query), [should, f"{result.triggers} of {result.runs}", rate], style)

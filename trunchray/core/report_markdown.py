"""A report for people: `report.md`."""

from __future__ import annotations

from collections.abc import Sequence

from trunchray.core.contrast import ModelPair
from trunchray.core.facts import facts
from trunchray.core.legend import legend
from trunchray.core.markdown import EFFECT_HEADERS, effect_cells, table, text, whole_text
from trunchray.core.report import Figures, ModelReport, Report
from trunchray.core.wording import cost, coverage, percent, share_range

_HEADERS = (
    *("Pass rate", "95 % interval", "Mean score", "Passed", "Failed", "Error", "Not run", "Coverage"),
    *("Tokens in / out", "Cost (USD)", "p50 / p95 (s)"),
)

_ROWS = """\
- Each trial is a row of `results.parquet`, beside this page. These are the ones that did not pass:

```python
import pyarrow.parquet as pq
columns = ["agent", "case_id", "outcome", "message", "failure", "output"]
print(pq.read_table("results.parquet", columns=columns, filters=[("outcome", "!=", "passed")]).to_pylist())
```"""


def report_markdown(report: Report) -> str:
    """The whole page: models, evals under each model, errors, and how to read it."""
    sections = [f"# {text(report.title)}", _headline(report), _models(report.models)]
    if report.attempts > 1:
        sections.append(_attempts(report.models))
    if report.comparisons:
        sections.append(_comparisons(report.comparisons))
    sections += [_model(model) for model in report.models]
    reading = [*(f"- {sentence}" for sentence in legend(report)), _ROWS]
    return "\n\n".join([*sections, "## How to read this", "\n".join(reading)]) + "\n"


def _headline(report: Report) -> str:
    state = (
        "Complete" if report.complete else f"**Incomplete**: {report.not_run:,} of {report.planned:,} trials not run"
    )
    return (
        f"Run `{report.run}` of release `{report.release_digest[:12]}`, "
        f"{report.planned:,} trials, attempts per case: {report.attempts}. {state}."
    )


def _models(models: Sequence[ModelReport]) -> str:
    rows = [(text(model.name), *_cells(model)) for model in models]
    return "## Models\n\n" + table(("Model", *_HEADERS), rows)


def _attempts(models: Sequence[ModelReport]) -> str:
    ks = sorted({k for model in models for k in model.pass_at_k}, key=int)
    headers = ("Model", *(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks))
    rows = [
        (
            text(model.name),
            *(percent(model.pass_at_k.get(k)) for k in ks),
            *(percent(model.pass_hat_k.get(k)) for k in ks),
        )
        for model in models
    ]
    return "## Attempts\n\n" + table(headers, rows)


def _comparisons(pairs: Sequence[ModelPair]) -> str:
    headers = ("Second − first", "Cases", "Left out", *EFFECT_HEADERS, "Fixed", "Broke")
    rows = [
        (
            f"{text(pair.second)} − {text(pair.first)}",
            f"{pair.pass_rate.cases:,}",
            f"{pair.left_out:,}",
            *effect_cells(pair.pass_rate),
            f"{pair.fixed.count:,}",
            f"{pair.broke.count:,}",
        )
        for pair in pairs
    ]
    return "## Between models\n\n" + table(headers, rows)


def _model(model: ModelReport) -> str:
    evals = table(("Eval", *_HEADERS), [(text(each.eval_id), *_cells(each)) for each in model.evals])
    parts = [f"## {text(model.name)}", _facts(model), evals]
    if model.errors:
        errors = [(error.kind, f"{error.count:,}", text(error.example)) for error in model.errors]
        parts.append(table(("Error", "Trials", "For example"), errors, words=["For example"]))
    return "\n\n".join(parts)


def _facts(model: ModelReport) -> str:
    said = [f"`{model.model}`, agent `{model.agent_digest[:12]}`", *map(whole_text, facts(model))]
    return "; ".join(said) + "."


def _cells(figures: Figures) -> tuple[str, ...]:
    usage, latency = figures.usage, figures.latency
    return (
        percent(figures.pass_rate),
        share_range(figures.pass_rate_low, figures.pass_rate_high),
        _mean(figures.mean_score, figures.mean_score_se),
        f"{figures.passed:,}",
        f"{figures.failed:,}",
        f"{figures.error:,}",
        f"{figures.not_run:,}",
        coverage(figures),
        f"{_count(usage.input_tokens)} / {_count(usage.output_tokens)}",
        cost(figures),
        f"{latency.p50:.2f} / {latency.p95:.2f}" if latency else "–",
    )


def _mean(score: float | None, error: float | None) -> str:
    if score is None:
        return "–"
    return f"{score:.3f}" if error is None else f"{score:.3f} ± {error:.3f}"


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"

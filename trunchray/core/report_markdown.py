"""A report for people: `report.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunchray.core.report import Figures, ModelReport, Report

_HEADERS = (
    *("Pass rate", "95 % interval", "Mean score", "Passed", "Failed", "Error", "Not run", "Coverage"),
    *("Tokens in / out", "Cost (USD)", "p50 / p95 (s)"),
)

_LEGEND = """\
- The pass rate and the mean score are over graded trials; errors and trials that did not run count neither way, so \
read them together with coverage.
- A 95 % interval holds the model's true rate on cases like these 95 times in 100: two models whose intervals overlap \
may not differ. ± is one standard error, clustered by eval when there are several."""

_BOUNDS = "- Bounds: what the pass rate would have been, had every error been a fail, or a pass."

_ROWS = """\
- Each trial is a row of `results.parquet`, beside this page. These are the ones that did not pass:

```python
import pyarrow.parquet as pq
columns = ["agent", "case_id", "outcome", "message", "failure", "output"]
print(pq.read_table("results.parquet", columns=columns, filters=[("outcome", "!=", "passed")]).to_pylist())
```"""


def markdown(report: Report) -> str:
    """The whole page: models, evals under each model, errors, and how to read it."""
    sections = [f"# {_text(report.title)}", _headline(report), _models(report.models)]
    if report.attempts > 1:
        sections.append(_attempts(report.models))
    sections += [_model(model) for model in report.models]
    legend = [_LEGEND, *([_BOUNDS] if any(model.error for model in report.models) else []), _ROWS]
    return "\n\n".join([*sections, "## How to read this", "\n".join(legend)]) + "\n"


def coverage(figures: Figures) -> str:
    """In percent, rounded down: only a whole one is 100%."""
    graded = figures.passed + figures.failed
    if graded == figures.planned:
        return "100%"
    return f"{graded * 1000 // figures.planned / 10:.1f}%"


def _headline(report: Report) -> str:
    state = (
        "Complete" if report.complete else f"**Incomplete**: {report.not_run:,} of {report.planned:,} trials not run"
    )
    return (
        f"Run `{report.run}` of release `{report.release_digest[:12]}`, "
        f"{report.planned:,} trials, attempts per case: {report.attempts}. {state}."
    )


def _models(models: Sequence[ModelReport]) -> str:
    rows = [(_text(model.name), *_cells(model)) for model in models]
    return "## Models\n\n" + _table(("Model", *_HEADERS), rows)


def _attempts(models: Sequence[ModelReport]) -> str:
    ks = sorted({k for model in models for k in model.pass_at_k}, key=int)
    headers = ("Model", *(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks))
    rows = [
        (
            _text(model.name),
            *(_percent(model.pass_at_k.get(k)) for k in ks),
            *(_percent(model.pass_hat_k.get(k)) for k in ks),
        )
        for model in models
    ]
    return "## Attempts\n\n" + _table(headers, rows)


def _model(model: ModelReport) -> str:
    evals = _table(("Eval", *_HEADERS), [(_text(each.eval_id), *_cells(each)) for each in model.evals])
    parts = [f"## {_text(model.name)}", _facts(model), evals]
    if model.errors:
        errors = [(error.kind, f"{error.count:,}", _text(error.example)) for error in model.errors]
        parts.append(_table(("Error", "Trials", "For example"), errors))
    return "\n\n".join(parts)


def _facts(model: ModelReport) -> str:
    facts = [f"`{model.model}`, agent `{model.agent_digest[:12]}`"]
    if model.not_run:
        facts.append(f"{model.not_run:,} trials not run: {_text(model.not_run_reason or '')}")
    if model.bounds and model.error:
        bounds = model.bounds
        facts.append(f"bounds {_percent(bounds.errors_failed)} to {_percent(bounds.errors_passed)}")
    if model.finish_reasons:
        facts.append(
            "finish reasons: " + ", ".join(f"{name} {count:,}" for name, count in model.finish_reasons.items())
        )
    facts.append(f"tool calls: {model.tool_calls:,}")
    if model.cache_hits:
        facts.append(f"cache hits: {model.cache_hits:,}, which saved {model.saved_tokens:,} tokens")
    return "; ".join(facts) + "."


def _cells(figures: Figures) -> tuple[str, ...]:
    usage, latency = figures.usage, figures.latency
    return (
        _percent(figures.pass_rate),
        _range(figures.pass_rate_low, figures.pass_rate_high),
        _mean(figures.mean_score, figures.mean_score_se),
        f"{figures.passed:,}",
        f"{figures.failed:,}",
        f"{figures.error:,}",
        f"{figures.not_run:,}",
        coverage(figures),
        f"{_count(usage.input_tokens)} / {_count(usage.output_tokens)}",
        "–" if figures.cost_usd is None else f"{figures.cost_usd:.4f}",
        f"{latency.p50:.2f} / {latency.p95:.2f}" if latency else "–",
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _range(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def _mean(score: float | None, error: float | None) -> str:
    if score is None:
        return "–"
    return f"{score:.3f}" if error is None else f"{score:.3f} ± {error:.3f}"


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    align = ["---", *["---:"] * (len(headers) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (headers, align, *rows))


def _text(value: str) -> str:
    """Any text on one line of a table, at most 200 characters, shown as it is."""
    line = " ".join(value.split())
    line = line if len(line) <= 200 else line[:200] + "…"
    for special in "\\|<*_`[":
        line = line.replace(special, "\\" + special)
    return line

"""What there is to say of a model besides its row in a table."""

from __future__ import annotations

from collections.abc import Iterator

from trunchray.core.excerpt import excerpt
from trunchray.core.report import ModelReport
from trunchray.core.wording import percent


def facts(model: ModelReport) -> Iterator[str]:
    """Parts of a sentence."""
    if model.not_run:
        yield f"{model.not_run:,} trials not run: {excerpt(model.not_run_reason or '', 200)}"
    if model.bounds and model.error:
        yield f"bounds {percent(model.bounds.errors_failed)} to {percent(model.bounds.errors_passed)}"
    if model.none_failed_below is not None:
        yield f"nothing failed, so the rate of failures is below {model.none_failed_below:.1%} (rule of three)"
    if model.none_passed_below is not None:
        yield f"nothing passed, so the pass rate is below {model.none_passed_below:.1%} (rule of three)"
    if model.finish_reasons:
        yield "finish reasons: " + ", ".join(f"{name} {count:,}" for name, count in model.finish_reasons.items())
    yield f"tool calls: {model.tool_calls:,}"
    if model.uncounted:
        yield f"trials of unknown cost, as their tokens or their price were not known: {model.uncounted:,}"
    if model.retried:
        yield f"rows from retries: {model.retried:,}"
    if model.cache_hits:
        yield f"cache hits: {model.cache_hits:,}, which saved {model.saved_tokens:,} tokens"

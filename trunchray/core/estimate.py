"""What trials will cost, before they are run: from the sizes of their cases, or better from trials that were run.

From sizes, everything is an assumption, named below; the range spans them and promises nothing. From rows the range is
a 95 % prediction interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, sqrt
from typing import Literal, NamedTuple

from trunchray.core.agent import AgentSpec
from trunchray.core.budget import NANO, Spend
from trunchray.core.case import CaseInput
from trunchray.core.distributions import student_quantile
from trunchray.core.frozen import Frozen
from trunchray.core.stats import CONFIDENCE

BYTES_PER_TOKEN = (5.0, 4.0, 3.0)
"""Of UTF-8 text, when a tokenizer does well, typically, and badly: English is about four characters a token, and the
three bytes of a Chinese character are about one."""

MESSAGE_TOKENS = 4
"""What a message costs besides its text."""

OUTPUT_SHARE = (1 / 128, 1 / 8, 1.0)
"""How much of `max_output_tokens` a model writes in a call, at least, typically and at most: limits are set for the
longest answer, and most are far shorter."""

CALLS_WITH_TOOLS = (1, 2, 4)
"""Model calls in a trial whose case has tools; never more than its limits allow."""


class Range(Frozen):
    """A figure that is not known yet."""

    low: float
    expected: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, expected=self.expected + other.expected, high=self.high + other.high)


NOTHING = Range(low=0, expected=0, high=0)


class ModelEstimate(Frozen):
    """What `trials` trials of one model will cost."""

    name: str
    trials: int
    """Those that are owed."""
    tokens: Range
    usd: Range | None
    """None when the price is unknown."""
    basis: Literal["sizes", "rows"]
    rows: int = 0
    """Trials that were run already, from which the rest is estimated."""


class Size(NamedTuple):
    """What is sent first in the trial of one case."""

    bytes: int
    """Of the prompts and the schemas of the tools."""
    messages: int
    tools: bool


def size(case: CaseInput, schemas: Sequence[bytes]) -> Size:
    """The size of a case; `schemas` holds the description of each of its tools, as it is sent."""
    texts = [text.encode("utf-8", "replace") for text in (case.system_prompt, case.prompt) if text is not None]
    return Size(sum(map(len, (*texts, *schemas))), len(texts), bool(schemas))


def from_sizes(agent: AgentSpec, sizes: Sequence[Size], trials: int, *, answer: float | None = None) -> ModelEstimate:
    """The cost of `trials` trials, spread evenly over cases of these sizes, of which there is at least one.

    `answer`: the tokens of an answer, where they are known, as those of a mock are.
    """
    low, expected, high = (_trial(agent, sizes, assumption, answer) for assumption in range(3))
    tokens = [trials * (read + written) for read, written in (low, expected, high)]
    usd = [trials * dollars for dollars in (_usd(agent, *one) for one in (low, expected, high)) if dollars is not None]
    return ModelEstimate(
        name=agent.name,
        trials=trials,
        tokens=_range(tokens),
        usd=_range(usd) if usd else None,
        basis="sizes",
    )


def from_rows(agent: AgentSpec, rows: Sequence[Spend], trials: int) -> ModelEstimate:
    """The cost of `trials` further trials, like the ones that `rows` were drawn from, of which there are at least two.

    A prediction interval for their sum: Student's t times s √(R² / n + R), for R trials to come after n; see Hahn &
    Meeker, "Statistical intervals" (1991), section 4.7.
    """
    return ModelEstimate(
        name=agent.name,
        trials=trials,
        tokens=_predicted([row.tokens for row in rows], trials),
        usd=_predicted([row.usd for row in rows], trials) if agent.price else None,
        basis="rows",
        rows=len(rows),
    )


def one_trial(estimate: ModelEstimate, end: Literal["expected", "high"] = "expected") -> Spend:
    """What one of the trials is expected to cost, or what it would at the high end; nothing when there are none."""
    if not estimate.trials:
        return Spend()
    usd = getattr(estimate.usd, end) if estimate.usd else 0
    return Spend(round(usd * NANO / estimate.trials), round(getattr(estimate.tokens, end) / estimate.trials))


def together(ranges: Iterable[Range | None]) -> Range:
    """The sum of those that are known; its ends are as if all went the same way."""
    return sum((one for one in ranges if one), NOTHING)


def _trial(agent: AgentSpec, sizes: Sequence[Size], assumption: int, answer: float | None) -> tuple[float, float]:
    """The tokens that one trial reads and writes on average. `assumption` is 0 for low, 1 for typical, 2 for high."""
    limits = agent.limits
    written = max(1.0, OUTPUT_SHARE[assumption] * limits.max_output_tokens if answer is None else answer)
    calls = min(CALLS_WITH_TOOLS[assumption], limits.max_steps, limits.max_tool_calls + 1)
    read = fsum(
        _read(
            one.bytes / BYTES_PER_TOKEN[assumption] + one.messages * MESSAGE_TOKENS, calls if one.tools else 1, written
        )
        for one in sizes
    )
    steps = fsum(calls if one.tools else 1 for one in sizes)
    return read / len(sizes), written * steps / len(sizes)


def _read(opening: float, calls: int, written: float) -> float:
    """Each call reads again what was said before it."""
    return calls * opening + written * calls * (calls - 1) / 2


def _usd(agent: AgentSpec, read: float, written: float) -> float | None:
    price = agent.price
    return (read * price.input + written * price.output) / 1e6 if price else None


def _predicted(values: Sequence[float], trials: int) -> Range:
    count = len(values)
    mean = fsum(values) / count
    variance = fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = student_quantile((1 + CONFIDENCE) / 2, count - 1) * sqrt(variance * (trials * trials / count + trials))
    return Range(low=max(0.0, trials * mean - half), expected=trials * mean, high=trials * mean + half)


def _range(values: Sequence[float]) -> Range:
    low, expected, high = values
    return Range(low=low, expected=expected, high=high)

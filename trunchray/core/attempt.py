"""What is known of one attempt of a skill eval once it has ended: the content of its `timing.json`."""

from __future__ import annotations

from typing import Literal

from trunchray.core.frozen import Sparse

Status = Literal["ok", "error", "timeout", "exception", "harness-missing", "skipped"]
"""How an attempt ended: exit code 0; another one, or it could not be staged or started; too late; broken down on our
side; there is no such command; no harness is recorded, so that nothing ran."""

FAILURES: tuple[Status, ...] = ("error", "timeout", "exception", "harness-missing")
"""Attempts that should have given an answer and did not."""


class AttemptTiming(Sparse):
    """`timing.json`, which is written last: an attempt folder that has it is complete and never touched again."""

    unless_none = frozenset({"reason", "loaded"})

    case_id: str
    """As it was authored; `q000` and so on for trigger queries."""
    config: str
    status: Status
    elapsed_s: float = 0.0
    """Seconds that the command ran, to three decimals; 0 when it did not."""
    return_code: int | None = None
    """-1 when there is none because it was too late or never ran; below that, minus the signal that ended it; None
    for `skipped`."""
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    """Read and written; what a cache had is in it only where the tool counts it as input."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    tokens_reported: bool = False
    """Whether the transcript names tokens; the counts are 0 otherwise."""
    total_steps: int = 0
    """Turns of the model."""
    total_tool_calls: int = 0
    tool_calls: dict[str, int] = {}
    """By the name of the tool."""
    captured_at: str
    """UTC, ISO 8601 with a Z."""
    reason: str | None = None
    """What there is to say of the status besides its name; None where there is nothing."""
    truncated: tuple[str, ...] = ()
    """What was larger than is kept: `transcript.jsonl`, `stderr.txt` or paths below `cwd/`."""
    left_out: tuple[str, ...] = ()
    """What is not kept of the workspace, as `<path>: <why>`: sockets, pipes, devices, links that lead out of it."""
    loaded: bool | None = None
    """Whether the skill was loaded; None but for trigger queries, and where the tool printed nothing at all."""

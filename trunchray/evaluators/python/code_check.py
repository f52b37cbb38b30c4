"""Running a check that is code."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

from trunchray.adapters.calling import call, in_thread, is_async
from trunchray.core.check_result import CheckResult
from trunchray.core.record import RunRecord
from trunchray.evaluators.python.ended import ended
from trunchray.evaluators.python.reading import read_result

Check = Callable[[RunRecord], Any]


async def run_check(check: Check, run: RunRecord, seconds: float) -> CheckResult:
    """What a check says of a run; one that raises, or takes longer than so many seconds, fails.

    It is given a copy of its own. An async function runs on this event loop, any other in a thread of its own, where
    it can hang and keep neither the process nor other checks.
    """
    found = await ended(_result(check, run), seconds)
    return found.value if found.complaint is None else CheckResult.failed(found.complaint)


async def _result(check: Check, run: RunRecord) -> CheckResult:
    if is_async(check):
        return read_result(await call(check, await in_thread(partial(own_copy, run))))
    return read_result(await call(lambda: check(own_copy(run))))


def own_copy(run: RunRecord) -> RunRecord:
    """A copy of all of it that can be copied: an output such as an open file is shared by all checks."""
    try:
        return deepcopy(run)
    except Exception:  # whatever an object of somebody else's raises
        return RunRecord(
            input=deepcopy(run.input),
            output=_copied(run.output),
            expected_output=deepcopy(run.expected_output),
            steps=tuple(map(_copied, run.steps)),
            ms=run.ms,
            has_expected_output=run.has_expected_output,
        )


def _copied(part: Any) -> Any:
    try:
        return deepcopy(part)
    except Exception:
        return part

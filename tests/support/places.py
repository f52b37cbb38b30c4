"""What is said of errors, without the lines of the tests that raised them."""

from __future__ import annotations

import re
from dataclasses import replace

from trunchray.core.check_result import CheckResult
from trunchray.core.record import Returned

_PLACE = re.compile(r" \([^()]*tests/[^()]*\.py:\d+\)")


def unplaced(said: str) -> str:
    return _PLACE.sub("", said)


def unplaced_run(returned: Returned) -> Returned:
    steps = tuple(replace(step, error=step.error and unplaced(step.error)) for step in returned.steps)
    return replace(returned, error=returned.error and unplaced(returned.error), steps=steps)


def unplaced_result(result: CheckResult) -> CheckResult:
    return result.model_copy(update={"explanation": result.explanation and unplaced(result.explanation)})

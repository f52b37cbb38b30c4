"""What a check written in Python returned, as its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunchray.core.check_result import CheckResult
from trunchray.core.share import is_share
from trunchray.evaluators.python.showing import clean, shown

WANTED = "a check returns a bool, a number from 0 to 1, or {pass, value?, explanation?}"


def read_result(returned: object) -> CheckResult:
    """The result that a check's return value stands for.

    That is a bool; a number from 0 to 1, which passes only at 1; or a mapping with `pass` (an object with `passed`),
    and with `value` and `explanation` where there is more to say. Scalars of NumPy and its like are numbers, too.
    Anything else fails, and its explanation begins with "returned".
    """
    if isinstance(returned, CheckResult):
        return returned.model_copy(update={"explanation": _clean(returned.explanation)})
    plain = scalar(returned)
    if isinstance(plain, bool):
        return CheckResult(passed=plain, value=float(plain))
    if is_share(plain):
        below = None if plain == 1 else f"{plain} is below 1"
        return CheckResult(passed=plain == 1, value=abs(plain), explanation=below)
    return _detailed(_parts(plain)) or CheckResult.failed(f"returned {shown(returned)}; {WANTED}")


def scalar(value: Any) -> Any:
    """The Python number in a scalar of NumPy, or of a library that has its own likewise; anything else as it is."""
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        return value.item()
    return value


def _parts(returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        return {name: returned.get(name) for name in ("pass", "value", "explanation")}
    passed = getattr(returned, "passed", getattr(returned, "pass", None))
    return {"pass": passed, **{name: getattr(returned, name, None) for name in ("value", "explanation")}}


def _detailed(parts: Mapping[str, Any]) -> CheckResult | None:
    """None when one of the parts is not what it should be."""
    passed, explanation = scalar(parts["pass"]), parts["explanation"]
    value = float(passed is True) if parts["value"] is None else scalar(parts["value"])
    if not isinstance(passed, bool) or not is_share(value) or not isinstance(explanation, str | None):
        return None
    return CheckResult(passed=passed, value=abs(value), explanation=_clean(explanation))


def _clean(explanation: str | None) -> str | None:
    return None if explanation is None else clean(explanation)

"""A process that runs one of our hosts: starting it, reading what it says, and naming how it failed.

A host is not believed to keep the protocol: code that breaks out of its realm can write replies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT
from trunchray.adapters.sandbox.process import (
    Bounds,
    CallTimeout,
    ProcessDied,
    ProcessFailure,
    ProtocolBroken,
    SandboxProcess,
)
from trunchray.errors import SandboxError

_OUT_OF_MEMORY = ("out of memory", "out-of-memory", "allocation failed")
_BROKEN = "the process broke its protocol"


async def started(
    host: str, bounds: Bounds, *, what: str, environment: Mapping[str, str] = SANDBOX_ENVIRONMENT
) -> SandboxProcess:
    """Run `sandbox_host/<host>`; `what` names it in messages.

    Raises:
        SandboxError: "start_failed", when it does not start.
    """
    try:
        return await SandboxProcess.start(host, bounds, environment=environment)
    except (ProcessFailure, OSError) as e:
        raise start_failure(what, e) from e


def start_failure(what: str, cause: ProcessFailure | OSError) -> SandboxError:
    """The error of a process that did not come to the point where it serves."""
    log = f": {cause.log}" if isinstance(cause, ProcessFailure) and cause.log else ""
    return SandboxError(f"{what} did not start: {cause}{log}", type="start_failed", retryable=True)


@contextmanager
def reading() -> Generator[None, None, None]:
    """Around code that takes a reply apart: one of another shape raises `ProtocolBroken`."""
    try:
        yield
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as e:
        raise ProtocolBroken(_BROKEN) from e


def parsed(reply: bytes, *, parse_int: Callable[[str], Any] = int) -> dict[str, Any]:
    """A reply that is one JSON object.

    Raises:
        ProtocolBroken: it is none.
    """
    with reading():
        answer: Any = json.loads(reply, parse_int=parse_int)
    if not isinstance(answer, dict):
        raise ProtocolBroken(_BROKEN)
    return cast("dict[str, Any]", answer)


def parts(reply: bytes) -> tuple[dict[str, Any], bytes]:
    """A reply of two parts: one line of JSON, then raw bytes.

    Raises:
        ProtocolBroken: the line is no JSON object.
    """
    head, _, rest = reply.partition(b"\n")
    return parsed(head), rest


def out_of_memory(failure: ProcessFailure) -> bool:
    """Whether the process said that its memory did not suffice before it died."""
    return any(sign in failure.log.lower() for sign in _OUT_OF_MEMORY)


def explained(failure: ProcessFailure, deadline: float) -> str:
    """Why a module could not be looked at; `deadline` is what it had, in seconds."""
    match failure:
        case CallTimeout():
            return f"the module was not evaluated within {deadline:g} s"
        case ProcessDied():
            return f"evaluating the module ended its process ({failure}): {failure.log[-300:]}"
        case _:
            return f"the module cannot be read: {failure}"

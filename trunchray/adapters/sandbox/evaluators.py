"""Running the evaluator functions of authors: safely, one call never touching another, and fast enough for thousands.

A process serves one module and one call at a time, each call in a fresh realm (see `sandbox_host/realm.mjs`). Idle
processes are kept for the next call of the same module. Whatever goes wrong ends as an `EvaluatorError` of that call.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.sandbox.host import out_of_memory, parsed, start_failure, started
from trunchray.adapters.sandbox.process import (
    Bounds,
    CallTimeout,
    ProcessDied,
    ProcessFailure,
    ProtocolBroken,
    ReplyTooLarge,
    SandboxProcess,
)
from trunchray.errors import EvaluatorError

_HOST = "evaluator_host.mjs"
_SANDBOX = "the evaluator sandbox"
_MAX_REPLY = 1_100_000  # bytes; the host refuses results over 1,000,000 itself
_YOUNG_MB = 64
_MAX_CALLS = 2000
_MAX_BUSY = 30.0  # seconds
_MAX_CPU = 150  # seconds; more than a process can use that is recycled after 30 s, with all its threads
_START = 30.0  # seconds


@dataclass(frozen=True)
class SandboxModule:
    """A bundled module with an evaluator: `export` holds an object with a function `evaluate`.

    `key` identifies code and export together, for example the bundle's digest and the export's name.
    """

    key: str
    code: bytes
    export: str


@dataclass(frozen=True)
class Graded:
    """What an evaluator returned. `score` is from 0 to 1; `details` is JSON of at most 100 levels and 1 MB."""

    passed: bool
    score: float
    message: str | None
    details: JsonValue


@dataclass(eq=False)
class _Worker:
    """A process that has loaded `module`. `busy` is the time of its calls in seconds."""

    process: SandboxProcess
    module: tuple[str, str]
    calls: int = 0
    busy: float = 0
    spent: bool = False
    """Whether it must not serve another call."""

    @property
    def reusable(self) -> bool:
        return not self.spent and self.process.usable and self.calls < _MAX_CALLS and self.busy < _MAX_BUSY


class EvaluatorSandbox:
    """Runs at most `slots` calls at once, each for at most `deadline` seconds with a JavaScript heap of `heap_mb`.

    Up to `keep` idle processes wait for further calls, of whichever modules were used last. It belongs to one event
    loop.
    """

    def __init__(self, *, slots: int, deadline: float = 5.0, heap_mb: int = 256, keep: int = 4) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._deadline = deadline
        self._bounds = Bounds(heap_mb=heap_mb, cpu_seconds=_MAX_CPU, max_reply=_MAX_REPLY, young_mb=_YOUNG_MB)
        self._keep = keep
        self._idle: list[_Worker] = []
        self._closed = False

    async def evaluate(self, module: SandboxModule, given: dict[str, JsonValue]) -> Graded:
        """Call the function with `given`; waiting for a slot or a process does not count for the deadline.

        Raises:
            EvaluatorError: `type` is "timeout", "threw", "never_settled", "invalid_result", "output_too_large",
                "out_of_memory", "exited", "crashed" or "bad_module"; "invalid_input" when `given` is not JSON.
            SandboxError: "start_failed", when no process could be started.
        """
        request = _encoded(given)
        async with self._slots:
            return _graded(await self._answer(module, request))

    async def close(self) -> None:
        """Kill every idle process. Calls still running end theirs themselves."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(worker.process.close() for worker in idle))

    async def _answer(self, module: SandboxModule, request: bytes) -> dict[str, Any]:
        worker = await self._checkout(module)
        try:
            return await self._call(worker, request)
        except ProcessDied as e:
            if worker.calls == 1:
                raise _named(e, self._deadline) from e
            # What earlier calls left in memory may have killed it: this call deserves a process without a past.
            return await self._fresh_answer(module, request)
        except ProcessFailure as e:
            raise _named(e, self._deadline) from e

    async def _fresh_answer(self, module: SandboxModule, request: bytes) -> dict[str, Any]:
        worker = await self._start(module)
        try:
            return await self._call(worker, request)
        except ProcessFailure as e:
            raise _named(e, self._deadline) from e

    async def _call(self, worker: _Worker, request: bytes) -> dict[str, Any]:
        """One call; the worker is idle or dead afterwards."""
        worker.calls += 1
        begun = time.monotonic()
        try:
            reply = _checked(parsed(await worker.process.call(request, self._deadline)))
            worker.spent = reply.get("last") is not False
        except BaseException:
            worker.spent = True
            raise
        finally:
            worker.busy += time.monotonic() - begun
            await self._checkin(worker)
        return reply

    async def _checkout(self, module: SandboxModule) -> _Worker:
        """The idle process of this module that was used last, or a new one."""
        for worker in reversed(self._idle):
            if worker.module == (module.key, module.export):
                self._idle.remove(worker)
                if worker.reusable:
                    return worker
                await worker.process.close()
                break
        return await self._start(module)

    async def _checkin(self, worker: _Worker) -> None:
        if self._closed or not worker.reusable:
            await worker.process.close()
            return
        self._idle.append(worker)
        if len(self._idle) > self._keep:
            await self._idle.pop(0).process.close()

    async def _start(self, module: SandboxModule) -> _Worker:
        process = await started(_HOST, self._bounds, what=_SANDBOX)
        try:
            await _load(process, module)
        except ProcessFailure as e:
            raise start_failure(_SANDBOX, e) from e
        return _Worker(process, (module.key, module.export))


async def _load(process: SandboxProcess, module: SandboxModule) -> None:
    head = json.dumps({"export": module.export}).encode()
    try:
        refusal = parsed(await process.call(head + b"\n" + module.code, _START))
        if refusal:
            raise EvaluatorError(str(refusal.get("message")), type="bad_module")
    except BaseException:
        await process.close()
        raise


def _encoded(given: dict[str, JsonValue]) -> bytes:
    """As ASCII, so that half a surrogate pair reaches JavaScript as it is; NaN and infinities become null."""
    try:
        return _dumps(given)
    except ValueError:
        return _dumps(_finite(given))
    except RecursionError as e:
        raise EvaluatorError("the evaluator's input is nested too deeply", type="invalid_input") from e


def _dumps(value: JsonValue) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _checked(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply, when it is a verdict or a failure."""
    match reply:
        case {"passed": bool(), "score": int() | float() as score, "message": str() | None, "details": _} if (
            0 <= score <= 1
        ):
            return reply
        case {"type": str(), "message": str()}:
            return reply
        case _:
            raise ProtocolBroken("the process broke its protocol")


def _graded(reply: dict[str, Any]) -> Graded:
    if "passed" not in reply:
        raise EvaluatorError(reply["message"], type=reply["type"])
    return Graded(reply["passed"], float(reply["score"]), reply["message"], reply["details"])


def _named(failure: ProcessFailure, deadline: float) -> EvaluatorError:
    """The failure of a process as the failure of the call that it served."""
    match failure:
        case CallTimeout():
            return EvaluatorError(f"the evaluator did not finish within {deadline:g} s", type="timeout")
        case ReplyTooLarge():
            return EvaluatorError("the evaluator returned more than 1,000,000 bytes of JSON", type="output_too_large")
        case ProcessDied() if out_of_memory(failure):
            return EvaluatorError("the evaluator used more memory than it may", type="out_of_memory")
        case ProcessDied(code=code) if code >= 0:
            return EvaluatorError(f"the evaluator ended its process (exit code {code})", type="exited")
        case _:
            return EvaluatorError(f"the evaluator's process crashed: {failure}; {failure.log[-300:]}", type="crashed")

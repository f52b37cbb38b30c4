"""Looking at authored modules and data files while a release is compiled.

Author code runs in the same kind of process as evaluators do, each module in a fresh realm, and what is exported in
two, with another clock and other chance, so that an export that differs can be refused. What becomes part of a
release is written by JavaScript there, and passes through Python unchanged. The process keeps nothing: a handle names
bytes that are kept here, so that any module may crash or hang without loss.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

from pydantic import JsonValue

from trunchray.adapters.sandbox.difference import first_difference
from trunchray.adapters.sandbox.drifted import FIRST, REMEDY, SECOND
from trunchray.adapters.sandbox.host import explained, parts, reading, started
from trunchray.adapters.sandbox.process import Bounds, ProcessFailure, ProtocolBroken, SandboxProcess
from trunchray.errors import SandboxError

_HOST = "inspector_host.mjs"
_BOUNDS = Bounds(heap_mb=2048, cpu_seconds=600, max_reply=1 << 30, pipe_bytes=1 << 20)
_MODULE_DEADLINE = 10.0  # seconds, for code of authors
_DATA_DEADLINE = 120.0  # seconds, for code of our own

_Answer = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class Flaw:
    """Why an export is not plain data: `path` is like `cases[3].data.x`, or "" for the whole export."""

    path: str
    message: str


@dataclass(frozen=True)
class Inspection:
    """An export. `value` lacks its functions and what `flaws` names; `functions` are the paths of all functions."""

    handle: int
    value: JsonValue
    functions: tuple[str, ...]
    flaws: tuple[Flaw, ...]


@dataclass(frozen=True)
class Rows:
    """A JSON Lines file: `rows` and `flaws` hold line numbers, from 1, with the value or with what is wrong."""

    handle: int
    rows: list[tuple[int, JsonValue]]
    flaws: list[tuple[int, str]]


class Inspector:
    """Used as `async with Inspector() as inspector`. Every method may raise `SandboxError` when Deno cannot start."""

    def __init__(self, *, module_deadline: float = _MODULE_DEADLINE) -> None:
        self._module_deadline = module_deadline
        self._process: SandboxProcess | None = None
        self._kept: list[bytes] = []
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def inspect(self, code: bytes, export: str = "default") -> Inspection:
        """Evaluate a bundled module and look at one export, which must be an object of plain data and functions.

        It is evaluated twice, with another clock and other chance; the first place that differs is a flaw. A module
        that throws, hangs for 10 s or ends its process has a flaw that says so.
        """
        async with self._turn:
            first, second = await self._twice(code, export)
        answer, text = first
        with _reading():
            value = json.loads(text)
            flaws = tuple(Flaw(**flaw) for flaw in answer["flaws"]) or _differences(first, value, second)
            return Inspection(self.keep(text), value, tuple(answer["functions"]), flaws)

    async def is_evaluator(self, code: bytes, export: str) -> str | None:
        """None when the export holds a function `evaluate` and does not differ between two runs, else what is wrong.

        Whatever else it holds need not be plain data.
        """
        async with self._turn:
            head, _ = await self._look({"op": "isEvaluator", "export": export}, code)
            await self._stop_after(head)
            if head["flaws"]:
                flaws = [Flaw(**flaw) for flaw in head["flaws"]]
            else:
                first, second = await self._twice(code, export, flawed=True)
                with _reading():
                    flaws = _changes(first, second)
        return f"{flaws[0].path} {flaws[0].message}".strip() if flaws else None

    async def read_jsonl(self, data: bytes) -> Rows:
        """The rows of a JSON Lines file; blank lines are skipped, and lines with flaws are not among the rows."""
        head, text = await self._ask({"op": "readRows"}, data)
        with _reading():
            rows = [(line, value) for line, value in json.loads(text)]
            return Rows(self.keep(data), rows, [(line, message) for line, message in head["flaws"]])

    def keep(self, data: bytes) -> int:
        """A handle for JSON Lines that are known to be good, and for `emit`."""
        self._kept.append(data)
        return len(self._kept) - 1

    async def indented(self, lines: bytes) -> bytes:
        """JSON Lines as one array, as `JSON.stringify(values, null, 2)` writes it, and a line feed."""
        _, text = await self._ask({"op": "indented"}, lines)
        return text

    async def emit(
        self,
        eval_handle: int,
        rows_handle: int | None,
        *,
        path: str,
        rows_path: str | None,
        evaluate: JsonValue | None,
    ) -> bytes:
        """The compiled case lines of one eval, each ended by a line feed, as `JSON.stringify` writes them.

        The eval and its rows must have been inspected without flaws and have the documented shapes. `path` is the
        eval module and `rows_path` its data file, as they shall stand in `source`; `evaluate` replaces the eval's own
        evaluator, not those of its cases.
        """
        evaluation = self._kept[eval_handle]
        rows = b"" if rows_handle is None else self._kept[rows_handle]
        head = {
            "op": "caseLines",
            "evalBytes": len(evaluation),
            "hasRows": rows_handle is not None,
            "path": path,
            "rowsPath": rows_path,
            "evaluate": evaluate,
        }
        _, lines = await self._ask(head, evaluation + rows)
        return lines

    async def _twice(self, code: bytes, export: str, *, flawed: bool = False) -> tuple[_Answer, _Answer]:
        """To be called with the turn. What has flaws at first is not looked at again, unless it may be `flawed`."""
        head: dict[str, JsonValue] = {"op": "inspect", "export": export}
        first = await self._look({**head, **asdict(FIRST)}, code)
        second = first if first[0]["flaws"] and not flawed else await self._look({**head, **asdict(SECOND)}, code)
        await self._stop_after(second[0])
        return first, second

    async def _look(self, head: dict[str, JsonValue], code: bytes) -> _Answer:
        try:
            return _checked(await self._call(head, code, self._module_deadline))
        except ProcessFailure as e:
            await self._stop()
            flaw = {"path": "", "message": explained(e, self._module_deadline)}
            return {"flaws": [flaw], "functions": []}, b"null"

    async def _ask(self, head: dict[str, JsonValue], body: bytes) -> _Answer:
        """For work without author code: a failure is ours, or the machine's."""
        try:
            async with self._turn:
                return await self._call(head, body, _DATA_DEADLINE)
        except ProcessFailure as e:
            raise SandboxError(f"the inspecting process failed: {e}; {e.log}", type="crashed") from e

    async def _call(self, head: dict[str, JsonValue], body: bytes, deadline: float) -> _Answer:
        """To be called with the turn."""
        process = await self._running()
        return parts(await process.call(json.dumps(head).encode() + b"\n" + body, deadline))

    async def _stop_after(self, answer: dict[str, Any]) -> None:
        """Ends the process when the module can have changed what another module would see."""
        if answer.get("last"):
            await self._stop()

    async def _running(self) -> SandboxProcess:
        if self._process is None or not self._process.usable:
            await self._stop()
            self._process = await started(_HOST, _BOUNDS, what="Deno")
        return self._process

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()


@contextmanager
def _reading() -> Generator[None, None, None]:
    """A reply of another shape is a failure of the process."""
    try:
        with reading():
            yield
    except ProtocolBroken as e:
        raise SandboxError(f"the inspecting process failed: {e}", type="crashed") from e


def _checked(answer: _Answer) -> _Answer:
    """The answer, when its head has the shape that it must have."""
    head, rest = answer
    with reading():
        flaws = [{"path": str(flaw["path"]), "message": str(flaw["message"])} for flaw in head["flaws"]]
        return {**head, "flaws": flaws, "functions": [str(path) for path in head["functions"]]}, rest


def _differences(first: _Answer, value: JsonValue, second: _Answer) -> tuple[Flaw, ...]:
    """What a second run shows of an export without flaws, whose first `value` is given; nothing when both are alike."""
    (one, text), (other, other_text) = first, second
    if other["flaws"]:
        flaws = (Flaw(**flaw) for flaw in other["flaws"])
        return tuple(Flaw(flaw.path, f"{flaw.message} (only in the second of two runs; {REMEDY})") for flaw in flaws)
    if one["functions"] != other["functions"]:
        changed = sorted({*one["functions"]} ^ {*other["functions"]})
        return (Flaw(changed[0] if changed else "", f"differs between two runs; {REMEDY}"),)
    if text == other_text:
        return ()
    path, a, b = first_difference(value, json.loads(other_text))
    return (Flaw(path, f"differs between two runs: {a}, then {b}; {REMEDY}"),)


def _changes(first: _Answer, second: _Answer) -> list[Flaw]:
    """What a second run shows of an export that may have flaws, if they are the same."""
    (one, text), (other, other_text) = first, second
    if one["flaws"] != other["flaws"]:
        return [Flaw("", f"differs between two runs; {REMEDY}")]
    return [*_differences(({**one, "flaws": []}, text), json.loads(text), ({**other, "flaws": []}, other_text))]

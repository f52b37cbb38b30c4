"""Reading one eval module: its default export, its cases wherever they are, and what they inherit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from trunchray.adapters.sandbox.inspector import Flaw, Inspector
from trunchray.core.checks import NonEmpty
from trunchray.core.release import ReleaseTransformer
from trunchray.errors import Problem
from trunchray.frontends.benchmark.cases import CASE, ExpandedCase, expand
from trunchray.frontends.benchmark.csv_cases import Kind, as_jsonl, csv_kind, read_csv
from trunchray.frontends.benchmark.evals import EVAL, AuthoredEval, SharedCheck, bad_form, shared_check
from trunchray.frontends.benchmark.paths import bad_file, bad_syntax, relative_to_module
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.staging import Stage
from trunchray.frontends.benchmark.transformers import TRANSFORMED_CASES, Transformers


@dataclass(frozen=True)
class Rows:
    """The cases of an eval as plain JSON.

    When they are not in the eval module, `path` is where they come from and `handle` the inspector's name for them;
    `made_by` is the transformer that made them.
    """

    rows: Sequence[tuple[Position, JsonValue]] = ()
    path: str | None = None
    handle: int | None = None
    made_by: ReleaseTransformer | None = None


@dataclass(frozen=True)
class EvalModule:
    """An eval module that was read; `handle` is the inspector's name for its export."""

    path: str
    handle: int
    authored: AuthoredEval
    shared: SharedCheck | None
    data: Rows
    cases: Sequence[ExpandedCase]

    @property
    def size(self) -> int:
        """How many cases were written, wrong ones included."""
        return len(self.data.rows) or 1


@dataclass(frozen=True)
class Exported:
    """A module's default export: plain JSON without its functions."""

    handle: int
    value: dict[str, JsonValue]
    is_function: bool
    """Whether `evaluate` is one."""


async def read_export(
    inspector: Inspector, path: str, code: bytes, found: list[Problem], *, functions: frozenset[str] = frozenset()
) -> Exported | None:
    """A module's default export; None when it is not one plain object, and then `found` says why.

    `functions` names the members that may be functions.
    """
    inspection = await inspector.inspect(code)
    place = Position(path)
    problems = [place.at(flaw.path).problem(_whole(flaw)) for flaw in inspection.flaws]
    problems += [
        place.at(name).problem(_forbidden_function(name)) for name in inspection.functions if name not in functions
    ]
    found += problems
    if problems or not isinstance(inspection.value, dict):
        return None
    return Exported(inspection.handle, inspection.value, "evaluate" in inspection.functions)


@dataclass(frozen=True)
class Reader:
    """What it takes to read the eval modules of one repository."""

    inspector: Inspector
    stage: Stage
    transformers: Transformers


async def read_module(reader: Reader, path: str, code: bytes, found: list[Problem]) -> EvalModule | None:
    """An eval module with its cases; None when its export is unusable. Everything wrong goes to `found`."""
    exported = await read_export(reader.inspector, path, code, found, functions=frozenset({"evaluate"}))
    authored = exported and EVAL.read(exported.value, Position(path), found)
    if exported is None or authored is None:
        return None
    if complaint := bad_form(authored):
        found.append(Position(path).problem(complaint))
        return None
    shared = _shared(reader.stage, path, authored, found, is_function=exported.is_function)
    data = await _rows(reader, path, authored, found, is_function=exported.is_function)
    read = [(place, case) for place, row in data.rows if (case := CASE.read(row, place, found)) is not None]
    return EvalModule(path, exported.handle, authored, shared, data, expand(path, authored, shared, read))


def _shared(
    stage: Stage, path: str, authored: AuthoredEval, found: list[Problem], *, is_function: bool
) -> SharedCheck | None:
    if _is_csv(authored.cases):
        return SharedCheck(NonEmpty())  # records that are graded otherwise carry their own evaluator
    before = len(found)
    shared = shared_check(stage, path, authored, is_function=is_function, found=found)
    # A refused evaluator is a problem once, not once more for every case that inherits it.
    return SharedCheck(NonEmpty()) if len(found) > before else shared


async def _rows(reader: Reader, path: str, authored: AuthoredEval, found: list[Problem], *, is_function: bool) -> Rows:
    """The cases as written, in whichever of the forms the eval uses."""
    place = Position(path, 0, "cases")
    match authored.cases:
        case _ if "prompt" in authored.model_fields_set:
            return Rows()
        case []:
            found.append(place.problem("must hold at least one case"))
        case list() as cases:
            return Rows([(Position(path, index, of_case=True), case) for index, case in enumerate(cases, 1)])
        case str() as file:
            target = _data_file(reader.stage, place, file, found)
            if _is_csv(file):
                kind = csv_kind(authored.evaluate, Position(path, 0, "evaluate"), found, is_function=is_function)
                return _csv(reader, target, kind, found) if target else Rows()
            return await _jsonl(reader, target, found) if target else Rows()
        case {"transformer": _} | {"sources": _}:
            return await _transformed(reader, place, authored.cases, found)
        case other:
            wanted = "an array of cases, the path of a .jsonl or .csv file, or { transformer, sources }"
            found.append(place.problem(f"must be {wanted}, not {shown(other)}"))
    return Rows()


def _data_file(stage: Stage, place: Position, file: str, found: list[Problem]) -> str | None:
    """The path of a data file from the benchmark directory; it is authored relative to the eval module."""
    target = relative_to_module(place.path, file)
    if complaint := bad_syntax(file) or _bad_format(file) or bad_file(stage, target):
        found.append(place.problem(f"{shown(file)} {complaint}"))
        return None
    return target


async def _jsonl(reader: Reader, path: str, found: list[Problem]) -> Rows:
    content = (reader.stage.directory / path).read_bytes()
    if re.match(rb"(\xef\xbb\xbf)?\s*\[", content):
        found.append(Position(path).problem("holds a JSON array; write one JSON object a line"))
        return Rows()
    table = await reader.inspector.read_jsonl(content)
    found += [Position(path, row).problem(_bad_row(message)) for row, message in table.flaws]
    if not table.rows and not table.flaws:
        found.append(Position(path).problem("holds no case; write one JSON object a line"))
    return Rows([(Position(path, row), value) for row, value in table.rows], path, table.handle)


def _csv(reader: Reader, path: str, kind: Kind | None, found: list[Problem]) -> Rows:
    # Without a kind, which is a problem already, the rest of the file can be judged all the same.
    rows = read_csv((reader.stage.directory / path).read_bytes(), Position(path), kind or "non_empty", found)
    return Rows(rows, path, reader.inspector.keep(as_jsonl(rows)))


async def _transformed(reader: Reader, place: Position, cases: JsonValue, found: list[Problem]) -> Rows:
    authored = TRANSFORMED_CASES.read(cases, place, found)
    made = authored and await reader.transformers.cases(place, partial(relative_to_module, place.path), authored, found)
    if not made:
        return Rows()
    return Rows(made.rows(), made.made_by.path, reader.inspector.keep(made.lines), made.made_by)


def _is_csv(cases: JsonValue) -> bool:
    return isinstance(cases, str) and cases.endswith(".csv")


def _bad_format(file: str) -> str | None:
    return None if file.endswith((".jsonl", ".csv")) else "must be a .jsonl or .csv file"


def _whole(flaw: Flaw) -> str:
    """What is wrong, with the subject that a place without a field lacks."""
    needs_subject = not flaw.path and flaw.message.startswith(("must ", "is "))
    return f"the default export {flaw.message}" if needs_subject else flaw.message


def _bad_row(message: str) -> str:
    """What is wrong with a line; the JavaScript engine's own words begin with a capital and count lines anew."""
    if not message[:1].isupper():
        return message
    return f"is not valid JSON: {message[0].lower()}{re.sub(r' [(]line 1 column [0-9]+[)]', '', message[1:])}"


def _forbidden_function(name: str) -> str:
    if name.endswith(".evaluate"):
        return "must not be a function; only the eval itself may have an `evaluate` function"
    return "must not be a function; write plain data"

"""What happened in a trial as passages of text, in the order in which it was said and done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from trunchray.core.case import Case
from trunchray.core.checks import RubricLine

Role = Literal[
    "system", "prompt", "private", "answer", "call", "result", "limit", "attempt", "message", "check", "details"
]

LONGEST = 20_000
"""Characters of a passage that are sent unless more are asked for."""
ALTOGETHER = 400_000
"""Characters of an answer that are sent unless more are asked for; what comes later is cut after `SHORT`."""
SHORT = 500
AT_ONCE = 200
"""Passages of an answer that are sent at a time."""


class Passage(NamedTuple):
    """Some text: who said it or what it is, and a name that goes with it, empty where there is none."""

    role: Role
    name: str
    text: str


def asked(case: Case) -> list[Passage]:
    """What the agent was given."""
    system = case.input.system_prompt
    return [*([Passage("system", "", system)] if system else []), Passage("prompt", "", case.input.prompt)]


def kept_private(case: Case) -> list[Passage]:
    """What only grading knows of a case: its checks, with the answers they expect, and its data."""
    checks = [Passage("private", name, as_text(check.model_dump(mode="json"))) for name, check in case.checks.items()]
    return [*checks, *([] if case.data is None else [Passage("private", "data", as_text(case.data))])]


def told(row: Mapping[str, Any]) -> list[Passage]:
    """The trace of a trial; its answer at the end, where that is not the last thing that the model said."""
    found = [passage for step in row["steps"] or [] for passage in _step(step)]
    if _is_of_attempt(row):
        found += [passage for call in row["tool_calls"] or [] for passage in _call(call)]
    spoken = [passage.text for passage in found if passage.role == "answer"]
    if row["output"] and (not spoken or spoken[-1] != row["output"]):
        found.append(Passage("answer", "", row["output"]))
    return found


def remarks(row: Mapping[str, Any], case: Case, *, private: bool) -> list[Passage]:
    """What the evaluator said besides its score, which quotes what it expects and is `private`, or why it said none.

    Of the attempt of a coding tool that is each check of its case, with the evidence.
    """
    if not (private or row["failure"]):
        return []
    message = row["failure"]["message"] if row["failure"] else row["message"]
    details = row["details"]
    if _is_of_attempt(row) and details:
        return [_check(case, name, result) for name, result in sorted(details["checks"].items(), key=_place)]
    return [
        *([Passage("message", "", message)] if message else []),
        *([] if details is None else [Passage("details", "", as_text(details))]),
    ]


def as_text(value: JsonValue) -> str:
    """A text as it is, anything else as JSON that people can read."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def shown(passages: Sequence[Passage], start: int = 0) -> list[JsonValue]:
    """Some passages as they are sent, from number `start` on; `length` says how long those are that were cut."""
    left = ALTOGETHER
    found: list[JsonValue] = []
    for passage in passages[start : start + AT_ONCE]:
        text = passage.text[: LONGEST if left > 0 else SHORT]
        left -= len(text)
        found.append({"role": passage.role, "name": passage.name, "text": text, "length": len(passage.text)})
    return found


def _step(step: Mapping[str, Any]) -> Iterator[Passage]:
    match step["kind"]:
        case "model":
            said = step["output"]
            if said["text"]:
                yield Passage("answer", step["name"], said["text"])
            for call in said.get("toolCalls", ()):
                yield Passage("call", call["toolName"], _arguments(call["arguments"]))
        case "tool":
            yield Passage("result", step["name"], as_text(step["output"].get("value")))
        case "observed":
            yield from _observed(step["output"])
        case "attempt":
            yield Passage("attempt", step["name"], _about_attempt(step["output"]))
        case _:
            yield Passage("limit", step["name"], as_text(step["input"]))


def _observed(record: Mapping[str, Any]) -> Iterator[Passage]:
    """A step of a Python task: what went in, and what came out or went wrong."""
    name = record.get("name") or record["kind"]
    if "input" in record:
        yield Passage("call", name, as_text(record["input"]))
    yield Passage("result", name, as_text(record.get("error", record.get("output", ""))))


def _is_of_attempt(row: Mapping[str, Any]) -> bool:
    """Whether a coding tool was at work, whose calls are no steps of their own."""
    return any(step["kind"] == "attempt" for step in row["steps"] or [])


def _about_attempt(told: Mapping[str, Any]) -> str:
    """Where it is kept, how it ended, and, where somebody looked, whether the skill was loaded."""
    loaded = told.get("loaded")
    lines = [f"status  {told.get('status')}", f"folder  {told.get('folder')}"]
    return "\n".join([*lines, *([] if loaded is None else [f"skill   {'loaded' if loaded else 'not loaded'}"])])


def _call(call: Mapping[str, Any]) -> Iterator[Passage]:
    """A tool call of a coding tool, and what came of it where the tool has printed that."""
    name = call["toolName"]
    yield Passage("call", name, as_text(call["input"]))
    result = call.get("output") if call.get("error") is None else call["error"]
    if result is not None:
        yield Passage("result", name, as_text(result))


def _check(case: Case, name: str, result: Mapping[str, Any]) -> Passage:
    """One check, a line of a rubric say, with its verdict and the evidence for it."""
    check = case.checks.get(name)
    said = [check.text if isinstance(check, RubricLine) else "", result.get("explanation") or ""]
    return Passage("check", f"{name} {'passed' if result['pass'] else 'failed'}", "\n\n".join(filter(None, said)))


def _place(check: tuple[str, Any]) -> tuple[str, int]:
    """Orders checks by name, and those that are numbered by number: rubric-10 comes after rubric-9."""
    stem, _, number = check[0].rpartition("-")
    return (stem, int(number)) if number.isdecimal() else (check[0], 0)


def _arguments(raw: str) -> str:
    """The arguments of a call, laid out where they are JSON."""
    try:
        return json.dumps(json.loads(raw), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return raw

"""Cases of skill-creator (`evals.json`) as ours (`cases.json`), and back.

Both formats allow unknown keys, so what has no place in the other format keeps its own key. Where the converted entry
would still not give back the original, the original is kept in it, under `as_eval` or `as_case`. Converting back
restores it, unless the converted entry has been edited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from pydantic import JsonValue

from trunchray.adapters.location import absolute
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError
from trunchray.frontends.skill.conversion_notes import notes_on_cases, notes_on_evals
from trunchray.frontends.skill.entry import Entry, kind, read_each
from trunchray.frontends.skill.eval_lines import Object, lines, paths_of, texts

EXPECTED = "output matches: "
"""How the last line of a rubric begins if it stands for the `expected_output` of an eval."""

_CASE = ("id", "input", "rubric", "state_prefix", "files")
_EVAL = ("id", "prompt", "expected_output", "files", "expectations", "assertions", "state_prefix")
_RUBRIC_KEY = "rubric_key"
"""At the top of a case file: the key of an eval that its rubric lines belong under, if not `expectations`."""
_ADDED_KEY = "not_in_cases"
"""At the top of a file of evals that cases made: the keys that were not in the case file, and go on the way back."""
_OPTIONAL = ("rubric", "state_prefix", "files")

Entries = list[Object]


class Converted(Frozen):
    """The converted file, how many entries it has, and notes on what has no place in it."""

    content: dict[str, JsonValue]
    count: int
    notes: tuple[str, ...]


def to_cases(value: JsonValue, where: str) -> Converted:
    """The cases that evals of skill-creator make.

    Raises:
        UsageError: it is no object with the list `evals`, or one of them is no eval; with every problem.
    """
    if isinstance(value, dict) and "cases" in value and "evals" not in value:
        raise UsageError(f"{where}: is a case file already; use --to skill-creator to convert it back")
    if not isinstance(value, dict) or not isinstance(value.get("evals"), list):
        raise UsageError(f"{where}: a skill-creator file is an object with the list 'evals'; this is {kind(value)}")
    evals = _entries(value, "evals", where, needs=("id",), content="prompt")
    key = "assertions" if {key for one in evals for key in lines(one)} == {"assertions"} else "expectations"
    added = _added(value)
    cases = [_case(one, key, added) for one in evals]
    gone = [key for key in added if key == "skill_name"]
    top = _others(value, ("evals", "cases", _RUBRIC_KEY, _ADDED_KEY, *gone))
    top |= {_RUBRIC_KEY: key} if key != "expectations" else {}
    return Converted(content={**top, "cases": [*cases]}, count=len(cases), notes=notes_on_evals(evals, cases))


def to_evals(value: JsonValue, where: str, skill_name: str | None = None) -> Converted:
    """The evals of skill-creator that cases make. `skill_name`: None takes the file's own, or that of its folder.

    Raises:
        UsageError: there is no list of cases, or one of them is no case; with every problem.
    """
    top: Object = value if isinstance(value, dict) else {"cases": value}
    if not isinstance(top.get("cases"), list):
        raise UsageError(f"{where}: cases are a list, or an object with the list 'cases'; this is {kind(value)}")
    cases = _entries(top, "cases", where, needs=("id", "input"), content="input")
    key = "assertions" if top.get(_RUBRIC_KEY) == "assertions" else "expectations"
    named = skill_name or top.get("skill_name")
    added = [key for key in _OPTIONAL if any(key not in case for case in cases)] + ([] if named else ["skill_name"])
    evals = [_eval(one, key, added) for one in cases]
    content: Object = {"skill_name": named or skill_of(where)}
    content |= _others(top, ("skill_name", "evals", "cases", _RUBRIC_KEY, _ADDED_KEY))
    content |= {_ADDED_KEY: [*added]} if added else {}
    return Converted(content={**content, "evals": [*evals]}, count=len(evals), notes=notes_on_cases(cases, evals))


def skill_of(location: str) -> str:
    """The skill that a file belongs to: of `brief-writer/evals/cases.json`, and of `brief-writer/cases.json`."""
    folder = PurePosixPath(absolute(location)).parent
    return (folder.parent if folder.name == "evals" else folder).name or "skill"


def _entries(top: Object, key: str, where: str, *, needs: Sequence[str], content: str) -> Entries:
    def read(place: str, _at: int, value: JsonValue) -> Object:
        entry = Entry(place, value, what="an eval" if key == "evals" else "a case", needs=needs)
        if isinstance(entry.fields["id"], bool) or not isinstance(entry.fields["id"], str | int):
            raise entry.refused("id", "must be text or an integer")
        entry.text(content)
        if key == "cases":
            entry.texts("rubric")
            entry.texts("files")
        return entry.fields

    listed = top[key]
    found = read_each(f"{where}: {key}", listed if isinstance(listed, list) else [], read)
    if not found:
        raise UsageError(f"{where}: {key!r} is empty, so there is nothing to convert")
    return found


def _added(top: Object) -> Sequence[str]:
    """What a conversion has added to the cases that a file of evals was made of."""
    found = top.get(_ADDED_KEY)
    return [key for key in found if isinstance(key, str)] if isinstance(found, list) else []


def _case(one: Object, key: str, added: Sequence[str] = ()) -> Object:
    """The case of an eval; of its keys that are empty, without those that were `added`."""
    if (before := _before(one, "as_case", lambda case: _plain_eval(case, key), _bare_eval)) is not None:
        return before
    case = _without(_plain_case(one), added)
    return case if _same(_plain_eval(case, key), one, _bare_eval) else {**case, "as_eval": one}


def _eval(one: Object, key: str, added: Sequence[str] = ()) -> Object:
    """The eval of a case, which holds it as well where it could not be made of the eval again."""
    if (before := _before(one, "as_eval", _plain_case, _bare_case)) is not None:
        return before
    made = _plain_eval(one, key)
    again = _without(_plain_case(made), added)
    return made if _same(again, one, _with_text_id) else {**made, "as_case": one}


def _before(
    one: Object, key: str, convert: Callable[[Object], Object], bare: Callable[[Object], Object]
) -> Object | None:
    """The original that an entry keeps, if converting it again still gives that entry."""
    kept = one.get(key)
    return kept if isinstance(kept, dict) and _same(convert(kept), one, bare) else None


def _plain_case(one: Object) -> Object:
    expected, prefix = one.get("expected_output"), one.get("state_prefix")
    said = [f"{EXPECTED}{expected}"] if isinstance(expected, str) and expected.strip() else []
    case: Object = {
        "id": str(one.get("id")),
        "input": one.get("prompt") or "",
        "rubric": [*(text for some in lines(one).values() for text in texts(some)), *said],
        "state_prefix": prefix if isinstance(prefix, str) and prefix else None,
        "files": [*paths_of(one)],
    }
    return case | _others(one, (*_CASE, *_EVAL, "as_case", "as_eval"))


def _plain_eval(one: Object, key: str) -> Object:
    rubric = one.get("rubric")
    expected, said = _expected([line for line in rubric if isinstance(line, str)] if isinstance(rubric, list) else [])
    files: Object = {"files": one.get("files") or []}
    listed: Object = {key: [*said]} if said else {}
    made: Object = {
        "id": _number(str(one.get("id"))),
        "prompt": one.get("input") or "",
        "expected_output": expected,
        **(listed | files if key == "assertions" else files | listed),  # as people have them
    }
    made |= {"state_prefix": one["state_prefix"]} if one.get("state_prefix") else {}
    return made | _others(one, (*_CASE, *_EVAL, "as_case", "as_eval"))


def _expected(rubric: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The expected output that the last line of a rubric says, if it does, and the other lines."""
    if rubric and rubric[-1].startswith(EXPECTED) and rubric[-1][len(EXPECTED) :].strip():
        return rubric[-1][len(EXPECTED) :], rubric[:-1]
    return "", rubric


def _number(name: str) -> str | int:
    """Ids are numbers in skill-creator; an id such as "007", which is no number's text, stays text."""
    return int(name) if re.fullmatch(r"0|[1-9][0-9]{0,14}", name) else name


def _others(one: Object, known: Sequence[str]) -> Object:
    return {key: value for key, value in one.items() if key not in known}


def _same(a: Object, b: Object, bare: Callable[[Object], Object]) -> bool:
    """Whether two entries are equal, where an empty field equals a missing one."""
    return json.dumps(bare(a), sort_keys=True) == json.dumps(bare(b), sort_keys=True)


def _bare_eval(one: Object) -> Object:
    return {key: value for key, value in one.items() if key != "as_case" and (key not in _EVAL or value not in _EMPTY)}


def _bare_case(one: Object) -> Object:
    found = {key: value for key, value in one.items() if key != "as_eval" and (key not in _CASE or value not in _EMPTY)}
    return found | {"id": str(one.get("id"))}


def _with_text_id(one: Object) -> Object:
    return _others(one, ("as_eval",)) | {"id": str(one.get("id"))}


def _without(one: Object, added: Sequence[str]) -> Object:
    return {key: value for key, value in one.items() if key not in added or key not in _OPTIONAL or value not in _EMPTY}


_EMPTY: tuple[JsonValue, ...] = (None, "", [])

"""What a gate allows (YAML, or words on the command line) → `Gate`. Unknown keys are refused with the nearest one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from trunchray.core.gate import Gate, Limit
from trunchray.errors import UsageError
from trunchray.frontends.checked import validated
from trunchray.frontends.model_files import Location
from trunchray.frontends.yaml_file import YamlFile, read_yaml

_ALLOW = re.compile(r"(?P<name>[^=]+)=(?P<limits>.+)")


def read_gate(allow: Sequence[str]) -> Gate:
    """The gate that `--allow` values give: at most one file, and `NAME=LIMITS`, which replace what the file says.

    NAME is an eval, `each` or `overall`; LIMITS is a number of missed cases, or `key:value` separated by commas.

    Raises:
        UsageError: a file cannot be read, or something in it or in the words is impossible; with place and value.
    """
    files = [value for value in allow if _is_file(value)]
    if len(files) > 1:
        raise UsageError(f"--allow names {len(files)} files, {', '.join(files)}; give one")
    file = read_yaml(files[0]) if files else None
    content = _content(file)
    for value in allow:
        if not _is_file(value):
            _put(content, value)

    def place(location: Location) -> str:
        """The line of the file, unless the value is from the command line."""
        here = file is not None and _at(file.value, location) == _at(content, location)
        return file.place(location) if file is not None and here else "--allow"

    return validated(Gate, content, place)


def _is_file(value: str) -> bool:
    return value.endswith((".yaml", ".yml"))


def _content(file: YamlFile | None) -> dict[str, JsonValue]:
    if file is None:
        return {}
    if not isinstance(file.value, dict):
        raise UsageError(f"{file.where}: a gate is a mapping with the keys overall, each and evals")
    return dict(file.value)


def _put(content: dict[str, JsonValue], value: str) -> None:
    """Set the limit that one word of the command line gives."""
    found = _ALLOW.fullmatch(value)
    if found is None:
        raise UsageError(
            f"--allow {value!r}: give a .yaml file, or NAME=LIMITS, such as refunds=2, "
            "each=drop:0 or overall=min_pass_rate:0.9,max_drop:0.02"
        )
    name, limits = found["name"], _limits(value, found["limits"])
    if name in ("each", "overall"):
        content[name] = limits
        return
    evals = content.get("evals", {})
    if isinstance(evals, dict):
        content["evals"] = evals | {name: limits}


def _limits(value: str, words: str) -> JsonValue:
    if re.fullmatch("[0-9]+", words):
        return int(words)
    out: dict[str, JsonValue] = {}
    for word in words.split(","):
        key, colon, said = word.partition(":")
        if not colon:
            raise UsageError(
                f"--allow {value!r}: {word!r} is not key:value; known keys: {', '.join(Limit.model_fields)}"
            )
        out[key.strip()] = _number(said.strip())
    return out


def _number(text: str) -> JsonValue:
    """A number where the text is one as JSON writes it."""
    try:
        number: Any = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) else text


def _at(value: JsonValue, location: Location) -> JsonValue:
    for part in location:
        value = value.get(str(part)) if isinstance(value, dict) else None
    return value

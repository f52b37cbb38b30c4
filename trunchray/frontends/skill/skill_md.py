"""A skill's folder, and the name and description that its SKILL.md gives it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, ScalarNode

from trunchray.adapters.local_path import local_path, storable
from trunchray.core.frozen import Frozen
from trunchray.errors import UsageError

FILE = "SKILL.md"

_FRONTMATTER = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z0-9_-]+)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[|>][-+]?")
_ESCAPES = {r"\"": '"', r"\n": "\n", r"\\": "\\"}


class SkillMd(Frozen):
    """What a coding tool is told of a skill before it loads it."""

    name: str
    description: str
    """May have several lines where its author wrote "\\n" in quotes; otherwise its lines are joined."""


def skill_folder(location: str | Path, option: str = "--skill-path") -> Path:
    """The folder of a skill, absolute; its last part is the skill's folder name. `option` says where it was given.

    Raises:
        UsageError: it is no folder, has no SKILL.md, or its path cannot be stored.
    """
    folder = Path(os.path.abspath(local_path(str(location))))  # noqa: PTH100 - a link keeps the name that it has here
    if not folder.is_dir():
        raise UsageError(f"{option} {str(location)!r}: no such folder; give the folder that contains {FILE}")
    if not (folder / FILE).is_file():
        raise UsageError(
            f"{option} {str(location)!r}: has no {FILE}, so it is not a skill; give the folder that contains one"
        )
    return storable(folder)


def read_skill_md(folder: Path) -> SkillMd:
    """The name and the description of the skill in a folder.

    Raises:
        UsageError: SKILL.md cannot be read, or does not give both.
    """
    file = folder / FILE
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as e:
        raise UsageError(f"cannot read {str(file)!r}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"{file}: is not UTF-8 text ({e.reason} at byte {e.start}); save it as UTF-8") from e
    found = frontmatter(text)
    if found is None:
        raise UsageError(
            f"{file}: has no frontmatter; begin it with a line '---', then name and description, then '---'"
        )
    for key in ("name", "description"):
        if not found.get(key, "").strip():
            raise UsageError(f"{file}: the frontmatter has no {key}; write `{key}: …` in it")
    return SkillMd(name=found["name"].strip(), description=found["description"].strip())


def frontmatter(text: str) -> dict[str, str] | None:
    """The fields at the top level of a frontmatter that are text, by name; None where there is no frontmatter.

    It is read as YAML, except that the lines of a text are joined by one blank each, whatever YAML makes of them; and
    what is no YAML, as texts with a colon in them often are not, is read line by line.
    """
    found = _FRONTMATTER.match(text.replace("\r\n", "\n").replace("\r", "\n"))
    if found is None:
        return None
    try:
        return _by_yaml(found[1] or "")
    except (yaml.YAMLError, RecursionError):
        return _by_lines(found[1] or "")


def _by_yaml(text: str) -> dict[str, str]:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return {}
    if not isinstance(node, MappingNode):
        raise yaml.YAMLError("not a mapping")
    return {
        key.value: _joined(value.value) if value.style != '"' else value.value
        for key, value in node.value
        if isinstance(key, ScalarNode) and isinstance(value, ScalarNode)
    }


def _by_lines(text: str) -> dict[str, str]:
    fields: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if found := _FIELD.fullmatch(line):
            value = (found[2] or "").strip()
            lines = fields[found[1]] = [] if _BLOCK.fullmatch(value) else [value]
        elif line.strip():
            lines.append(line.strip())
    return {name: _unquoted(" ".join(filter(None, said))) for name, said in fields.items()}


def _unquoted(text: str) -> str:
    if re.fullmatch("'(?:[^']|'')*'", text):
        return text[1:-1].replace("''", "'")
    if re.fullmatch(r'"(?:[^"\\]|\\.)*"', text):
        return re.sub(r'\\["n\\]', lambda found: _ESCAPES[found[0]], text[1:-1])
    return text


def _joined(text: str) -> str:
    return " ".join(line.strip() for line in text.split("\n") if line.strip())

"""YAML as configs need it: JSON's values, every key once, and the line that each key stands on."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml
from pydantic import JsonValue
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from trunchray.adapters.location import read_file
from trunchray.core.excerpt import excerpt
from trunchray.errors import UsageError

MAX_BYTES = 8 * 2**20
"""Bytes of a file."""
MAX_VALUES = 100_000
"""Values a file may hold once its aliases are written out: a few lines of them can stand for billions."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every reader of JSON understands."""

_TAG = "tag:yaml.org,2002:"
_TAGS = {_TAG + name for name in ("null", "bool", "int", "float", "str", "seq", "map")}
_MERGE = _TAG + "merge"
_KINDS = {_TAG + "int": "an integer", _TAG + "float": "a number", _TAG + "bool": "true or false"}


@dataclass(frozen=True)
class YamlFile:
    """What a file says. `value` has only JSON's types."""

    where: str
    """Its path or URI."""
    value: JsonValue
    _root: Node | None

    def place(self, location: Sequence[int | str]) -> str:
        """`<where>:<line>` of a location: of its key, or of its entry in a list, or of the innermost one around it."""
        node = self._root
        line = 1
        for part in location:
            found = _child(node, part)
            if found is None:
                break
            place, node = found
            line = _line(place)
        return f"{self.where}:{line}"


def read_yaml(location: str) -> YamlFile:
    """Read one document, from a path on this machine or the URI of an object.

    Raises:
        UsageError: the file cannot be read, is not YAML, or says something that JSON cannot.
    """
    try:
        text = read_file(location, most=MAX_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is not None:
            _Check(location, loader).weigh(root)
        return YamlFile(location, loader.construct_document(root) if root is not None else None, root)
    except UnicodeDecodeError as e:
        raise UsageError(f"cannot read {location!r}: it is not UTF-8 text ({e.reason} at byte {e.start})") from e
    except RecursionError as e:
        raise UsageError(f"{location}: is nested too deeply") from e
    except yaml.YAMLError as e:
        raise UsageError(_not_yaml(location, e)) from e


class _Loader(yaml.SafeLoader):
    """Dates stay text, and 1e3 is a number, as people and JSON write it."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def flatten_mapping(self, node: MappingNode) -> None:
        """Put what `<<` brings in before the mapping's own keys, which win; PyYAML's own loses them when it nests."""
        pairs = cast("list[tuple[ScalarNode, Node]]", node.value)
        own = [(key, value) for key, value in pairs if key.tag != _MERGE]
        brought: dict[str, tuple[ScalarNode, Node]] = {}
        for source in [source for key, value in pairs if key.tag == _MERGE for source in _sources(value)]:
            self.flatten_mapping(source)
            for key, value in source.value:
                brought.setdefault(key.value, (key, value))
        names = {key.value for key, _ in own}
        node.value = [*(pair for name, pair in brought.items() if name not in names), *own]


_Loader.add_implicit_resolver(_TAG + "float", re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$"), [*"-+0123456789"])


class _Check:
    """Refuses what a config cannot mean, before anything is made of it."""

    def __init__(self, location: str, loader: _Loader) -> None:
        self._location, self._loader = location, loader
        self._weights: dict[Node, int | None] = {}

    def weigh(self, node: Node) -> int:
        """How many values the node stands for, aliases written out.

        Raises:
            UsageError: they are too many, or one of them is impossible.
        """
        if node in self._weights:
            weight = self._weights[node]
            if weight is None:
                raise self._refused(node, "holds itself, by its own alias")
            return weight
        self._weights[node] = None
        self._check_tag(node)
        if isinstance(node, ScalarNode):
            self._check_scalar(node)
        weight = 1 + sum(map(self.weigh, self._children(node)))
        if weight > MAX_VALUES:
            raise self._refused(node, f"stands for more than {MAX_VALUES:,} values")
        self._weights[node] = weight
        return weight

    def _children(self, node: Node) -> list[Node]:
        if isinstance(node, MappingNode):
            self._check_keys(node)
            return [value for _, value in node.value]
        return [*node.value] if isinstance(node, SequenceNode) else []

    def _check_keys(self, node: MappingNode) -> None:
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag not in (_TAG + "str", _MERGE):
                shown = repr(key.value) if isinstance(key, ScalarNode) else "a list or mapping"
                raise self._refused(key, f"the key {shown} is not text; put it in quotes")
            if key.value in lines:
                raise self._refused(key, f"the key {key.value!r} stands on line {lines[key.value]} too; keep one")
            lines[key.value] = _line(key)
            if key.tag == _MERGE and not all(isinstance(source, MappingNode) for source in _sources(value)):
                raise self._refused(key, "<< takes a mapping, or a list of them")

    def _check_tag(self, node: Node) -> None:
        if node.tag not in _TAGS:
            raise self._refused(node, f"the tag {node.tag.replace(_TAG, '!!')} has no meaning here; remove it")

    def _check_scalar(self, node: ScalarNode) -> None:
        try:
            value = self._loader.construct_object(node)
        except (ValueError, KeyError):
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            raise self._refused(node, f"{excerpt(node.value, 40)} cannot be used as {_KINDS[node.tag]}")
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            raise self._refused(node, f"{excerpt(node.value, 40)} is too large; integers go up to {MAX_INTEGER}")

    def _refused(self, node: Node, reason: str) -> UsageError:
        return UsageError(f"{self._location}:{_line(node)}: {reason}")


def _sources(node: Node) -> list[Any]:
    """The mappings that `<<` brings in; where there are several, the first wins."""
    return [*node.value] if isinstance(node, SequenceNode) else [node]


def _child(node: Node | None, part: int | str) -> tuple[Node, Node] | None:
    """Where a member of a mapping or list starts, its key if it has one, and the member; None when there is none."""
    if isinstance(node, MappingNode):
        pairs = cast("list[tuple[Node, Node]]", node.value)
        return next(((key, value) for key, value in pairs if key.value == part), None)
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _line(node: Node) -> int:
    """Counts from 1."""
    mark: Any = node.start_mark
    return mark.line + 1


def _not_yaml(location: str, error: yaml.YAMLError) -> str:
    mark: Any = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or " ".join(str(error).split()))
    hint = "; indent with spaces, not tabs" if "'\\t'" in problem else ""
    return f"{location}{f':{mark.line + 1}' if mark else ''}: not YAML: {problem}{hint}"

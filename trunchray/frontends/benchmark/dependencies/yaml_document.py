"""YAML that package managers write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST = 10_000_000  # values, after aliases are followed


def read_yaml(content: bytes) -> Any:
    """A YAML document of plain values.

    Raises:
        ValueError: it is not one.
    """
    try:
        document = yaml.load(content, Loader=_LOADER)  # noqa: S506 - the loader is a safe one
        size = _size(document, {})
    except yaml.YAMLError as e:
        raise ValueError(f"is not valid YAML: {str(e).splitlines()[0]}") from e
    except RecursionError as e:
        raise ValueError("is not valid YAML: it is nested too deeply") from e
    if size > _LARGEST:
        raise ValueError("is not what a package manager writes: its aliases stand for millions of values")
    return document


def _size(value: Any, known: dict[int, int]) -> int:
    """The values in a document, each as often as an alias stands for it; a few lines can mean billions of them."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        inside = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        known[id(value)] = 1 + sum(_size(each, known) for each in inside)
    return known[id(value)]

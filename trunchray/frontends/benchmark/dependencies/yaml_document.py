"""YAML that package managers write."""

from __future__ import annotations

from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(content: bytes) -> Any:
    """A YAML document of plain values.

    Raises:
        ValueError: it is not one.
    """
    try:
        return yaml.load(content, Loader=_LOADER)  # noqa: S506 - the loader is a safe one
    except yaml.YAMLError as e:
        raise ValueError(f"is not valid YAML: {str(e).splitlines()[0]}") from e

"""The config of a benchmark: what its default export may say, and what holds without one."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from trunchray.core import javascript
from trunchray.core.release import ReleaseLimits
from trunchray.frontends.benchmark.position import shown
from trunchray.frontends.benchmark.shapes import Authored, Shape, Text, no_duplicates

MAX_TITLE = 120
_LARGEST = 2**53 - 1

_NUMBER = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_semantic_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_IDENTIFIER}(\.{_IDENTIFIER})*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
"""Semantic Versioning 2.0.0, section 2 and 9 to 10."""
_LICENSE = r"[A-Za-z0-9][A-Za-z0-9.+-]*"
_spdx = re.compile(rf"{_LICENSE}( (AND|OR|WITH) {_LICENSE})*")


def _title(value: str) -> str:
    if len(value) > MAX_TITLE:
        raise ValueError(f"has {len(value)} characters; at most {MAX_TITLE} are allowed")
    return value


def _version(value: str) -> str:
    if len(value) > MAX_TITLE or not _semantic_version.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a semantic version such as '1.0.0' or '2.1.0-beta.1'")
    return value


def _license(value: str) -> str:
    if not _spdx.fullmatch(value):
        raise ValueError(f"{shown(value)} is not an SPDX license id such as 'Apache-2.0' or 'MIT'")
    return value


def _homepage(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", value)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"{shown(value)} is not an http or https URL")
    return value


def _version_one(value: object) -> object:
    if value != 1 or isinstance(value, bool):
        raise ValueError(f"must be 1, not {shown(value)}; this version of trunchray knows protocol version 1 only")
    return value


def _not_empty(values: list[str]) -> list[str]:
    if not values:
        raise ValueError("must name at least one module; leave the field out to use every module under evals/")
    return values


class AuthoredLimits(Authored):
    """What one trial may use, where the author says so."""

    max_steps: int = Field(default=ReleaseLimits().max_steps, ge=1, le=_LARGEST)
    max_tool_calls: int = Field(default=ReleaseLimits().max_tool_calls, ge=0, le=_LARGEST)
    max_output_tokens: int = Field(default=ReleaseLimits().max_output_tokens, ge=1, le=_LARGEST)


class AuthoredDefaults(Authored):
    limits: AuthoredLimits = AuthoredLimits()


class AuthoredConfig(Authored):
    """The default export of `benchmark.config.*`; whether a field was written shows in `model_fields_set`."""

    protocol_version: Annotated[int, BeforeValidator(_version_one)]
    title: Annotated[Text, AfterValidator(_title)]
    version: Annotated[str, AfterValidator(_version)]
    description: str = ""
    license: Annotated[str, AfterValidator(_license)] = ""
    homepage: Annotated[str, AfterValidator(_homepage)] = ""
    tags: Annotated[list[Text], AfterValidator(no_duplicates)] = []
    defaults: AuthoredDefaults = AuthoredDefaults()
    evals: Annotated[list[str], AfterValidator(_not_empty)] = []
    tools: list[str] = []

    @property
    def limits(self) -> ReleaseLimits:
        """The effective limits."""
        return ReleaseLimits.model_validate(self.defaults.limits.model_dump())

    def chosen(self, what: str) -> list[str] | None:
        """The `evals` or `tools` entrypoints; None when the author leaves them to be discovered."""
        return getattr(self, what) if what in self.model_fields_set else None


CONFIG = Shape[AuthoredConfig](AuthoredConfig)


def config_without_file(directory_name: str) -> AuthoredConfig:
    """What holds for a benchmark that has no config."""
    title = directory_name[:MAX_TITLE] if javascript.trim(directory_name) else "benchmark"
    return AuthoredConfig.model_validate({"protocolVersion": 1, "title": title, "version": "0.0.0"})

"""The machine on which coding tools run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from trunchray.adapters.fresh_home import is_brought
from trunchray.adapters.models.redaction import logins
from trunchray.adapters.tree import followed
from trunchray.core.credentials import is_credential
from trunchray.core.harness import Harness
from trunchray.core.masking import Mask
from trunchray.core.secrets import named_in, secrets_of, tokens_in

_FILE_READ, _ALL_READ = 1 << 20, 1 << 24
"""Bytes of one home file, and of all together, in which credentials are looked for."""


@dataclass(frozen=True, slots=True)
class Host:
    """What a run takes from it. `clock` counts seconds from anywhere."""

    clock: Callable[[], float] = time.monotonic
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    home: Path = field(default_factory=Path.home)
    rooms: Path | None = None
    """The folder of clean rooms; None: that of this user among temporary files."""
    grace: float = 5.0
    """Seconds between asking a command to end and killing it."""

    def mask(self, harness: Harness | None) -> Mask:
        """The credentials that a run of this harness could come by, as they are now.

        They are looked for in the variables that are passed on, in others that are named as credentials are, and in
        the home files. A mask has an end: variables come first, then what is named as a credential in any of the files,
        then what only looks like one.
        """
        if harness is None:
            return Mask(())
        named, tokens = list(self._of_variables(harness)), list[str]()
        for text in self._home_texts(harness):
            named += named_in(text)
            tokens += tokens_in(text)
        return Mask([*named, *tokens])

    def _of_variables(self, harness: Harness) -> Iterator[str]:
        for name, value in self.variables.items():
            passed_on = harness.env.get(name) == ""
            if passed_on or is_credential(name):
                # What a tool is not given counts by its look alone: `CACHE_KEY` may be "production".
                yield from secrets_of(name if passed_on else "", value)
            if passed_on and "@" in value:
                yield from _logins(value)

    def _home_texts(self, harness: Harness) -> Iterator[str]:
        left = _ALL_READ
        for file in _files(self.home, harness.home_files):
            content = b""
            with suppress(FileNotFoundError), file.open("rb") as opened:  # the home is in use, and files come and go
                content = opened.read(min(_FILE_READ, left))
            left -= len(content)
            if b"\0" not in content:
                yield content.decode(errors="replace")


def _logins(url: str) -> set[str]:
    try:
        return logins(url)
    except ValueError:
        return set()


def _files(home: Path, paths: tuple[str, ...]) -> Iterator[Path]:
    """The files among these, and those in the folders among them, as far as they may be read."""
    for path in paths:
        found = home / path
        if not is_brought(found):
            continue
        listed = [found] if found.is_file() else (file for _, file in followed(found, frozenset(), strict=False))
        yield from (file for file in listed if file.is_file() and os.access(file, os.R_OK))

"""Commands as people give them, in this process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trunchray.cli.main import run_command


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)


class CommandLine:
    """Runs commands in this process. `folder` is the working directory."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *argv: object) -> Outcome:
        self._capsys.readouterr()
        code = run_command([str(word) for word in argv])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in out + err, out + err
        return Outcome(code, out, err)

    def refused(self, *argv: object, code: int = 2) -> str:
        """What the command says as it refuses: the same with and without --json, and without leaving a trace."""
        before = self.listing()
        said = self.refused_while_others_write(*argv, code=code)
        assert self.listing() == before
        return said

    def refused_while_others_write(self, *argv: object, code: int = 2) -> str:
        """As `refused`; whatever changes in the working directory may be somebody else's doing."""
        plain, described = self(*argv), self(*argv, "--json")
        assert (plain.code, described.code) == (code, code), plain.err
        assert plain.out == ""
        assert plain.err.startswith("error: ")
        assert set(described.json) == {"error"}
        assert described.json["error"]["message"] in described.err
        return plain.err

    def listing(self) -> dict[str, str]:
        """Every file below the working directory, with a hash of its content; folders have none."""
        paths = sorted(self.folder.rglob("*"))
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in paths}


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file's content."""
    path.write_bytes(change(path.read_bytes()))

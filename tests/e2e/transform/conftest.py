"""Small repositories with transformers, and JavaScript itself to compare with."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.deno import binary

EVAL = """export default {
  id: "a",
  cases: { transformer: "../transformers/t.ts", sources: SOURCES },
  evaluate: { kind: "non_empty" },
};
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file of the repository; its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def repository(tmp_path: Path, write) -> Callable[..., Path]:
    """A benchmark whose only eval has the cases that `transform` returns; `rows` is its only source."""

    def repository(transform: str, rows: str | bytes = b"", sources: str = '{ rows: "../data/rows.txt" }') -> Path:
        write("evals/a.ts", EVAL.replace("SOURCES", sources))
        write("transformers/t.ts", f'export default {{ name: "T", transform: async ({{ sources }}) => {transform} }};')
        write("data/rows.txt", rows)
        return tmp_path

    return repository


@pytest.fixture
def plain_deno(tmp_path: Path) -> Callable[[str], bytes]:
    """What a module prints that runs in Deno as everybody has it."""

    def run(code: str) -> bytes:
        script = tmp_path / "plain.mjs"
        script.write_text(code)
        command = [binary(), "run", "--quiet", "--allow-read", str(script)]
        return subprocess.run(command, capture_output=True, check=True).stdout

    return run

"""Tool modules of authors, with the real `ai` and `zod` beside them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from support.npm import installed
from trunchray.errors import Problem
from trunchray.frontends.benchmark.staging import Stage
from trunchray.frontends.benchmark.tools import Tools, read_tools

VERSIONS = {
    5: {"ai": "^5.0.0", "zod": "^3.25.0"},
    6: {"ai": "^6.0.0", "zod": "^4.0.0", "valibot": "^1.0.0"},
    7: {"ai": "^7.0.0", "zod": "^4.0.0"},
}
IMPORTS = 'import { tool, jsonSchema, dynamicTool } from "ai";\nimport { z } from "zod";\n'


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder with a major version of `ai`, installed when it is first asked for."""
    cache = tmp_path_factory.mktemp("deno")
    folders: dict[int, Path] = {}

    def folder(major: int) -> Path:
        if major not in folders:
            folders[major] = installed(tmp_path_factory.mktemp("npm") / str(major), VERSIONS[major], cache=cache)
        return folders[major]

    return folder


@pytest.fixture(scope="session")
def stage_of(packages) -> Callable[..., Stage]:
    """A stage below installed packages, with these files; `ai` is the major version."""
    numbers = itertools.count()

    def stage(files: dict[str, str], *, ai: int = 6) -> Stage:
        root = packages(ai)
        directory = root / f"benchmark-{next(numbers)}"
        for name, content in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(content)
        return Stage(directory, root, {})

    return stage


@pytest.fixture
def read(stage_of):
    """Read tool modules as the compiler does; gives the tools and the problems."""

    async def reader(files: dict[str, str], *, ai: int = 6) -> tuple[Tools, list[Problem]]:
        found: list[Problem] = []
        stage = stage_of({name: IMPORTS + content for name, content in files.items()}, ai=ai)
        tools = await read_tools(stage, list(files), found)
        return tools, sorted(found)

    return reader

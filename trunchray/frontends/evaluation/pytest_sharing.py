"""One evaluation for all the processes that pytest-xdist spreads its checks over."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from trunchray.core.digest import sha256
from trunchray.core.evaluation import EvaluationReport
from trunchray.core.frozen import Frozen
from trunchray.errors import TrunchrayError, UsageError

Found = EvaluationReport | TrunchrayError


class _Shared(Frozen):
    """What the first process found."""

    report: EvaluationReport | None = None
    error: str | None = None


def shared(config: pytest.Config, path: Path, run: Callable[[], Found]) -> Found:
    """What `run` finds, called by the first process of a test run that asks; the others wait for it."""
    workerinput: dict[str, str] | None = getattr(config, "workerinput", None)
    if workerinput is None:
        return run()
    name = sha256(f"{workerinput['testrunuid']}\n{path}".encode())[:32]
    with (_folder(config) / f"trunchray-evals-{name}.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if content := file.read():
            return _read(content)
        found = run()
        kept = _Shared(error=str(found)) if isinstance(found, TrunchrayError) else _Shared(report=found)
        file.write(kept.model_dump_json())
        return found


def _folder(config: pytest.Config) -> Path:
    """The folder for temporary files of all workers: pytest-xdist gives each one in it."""
    own = config.getoption("basetemp")
    return Path(own).parent if own else Path(tempfile.gettempdir())


def _read(content: str) -> Found:
    kept = _Shared.model_validate_json(content)
    return kept.report if kept.report is not None else UsageError(kept.error or "")

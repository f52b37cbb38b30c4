"""What of a Python evaluation cannot be data: its task, its checks, and the judge that they ask."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunchray.core.agent import PythonAgent
from trunchray.errors import UsageError

if TYPE_CHECKING:
    from trunchray.agents.python.task import Task
    from trunchray.evaluators.judges.base import Judge
    from trunchray.evaluators.python.scorer import Scorer


@dataclass(frozen=True, slots=True)
class Program:
    """One evaluation's code. `timeout` bounds each run of the task and each check, in seconds."""

    task: Task
    scorers: Mapping[str, Scorer]
    judge: Judge | None
    timeout: float
    modules: frozenset[str] = frozenset()
    """The names of the modules that define the task and the checks."""


def required(program: Program | None, agent: PythonAgent) -> Program:
    """The program that `agent` runs.

    Raises:
        UsageError: there is none, because a command other than the evaluation itself drives its run.
    """
    if program is None:
        raise UsageError(
            f"{agent.name!r} is Python code ({agent.task}), which only the program that evaluates it can run and "
            "check; call `trunchray.evaluate`, or `trunchray eval run FILE`, again"
        )
    return program


def unpacked(program: Program | bytes | None) -> Program | None:
    """The program; workers in other processes get it pickled, from the driver alone and never from a store.

    Raises:
        UsageError: it cannot be unpickled, because a module is missing, say.
    """
    if not isinstance(program, bytes):
        return program
    try:
        return pickle.loads(program)  # noqa: S301 - of our own driver, and our own code like the rest of it
    except ModuleNotFoundError as e:
        raise UsageError(
            f"the task, or a check, needs the module {e.name!r}, which is not on this machine; install it on every node"
        ) from e
    except Exception as e:
        raise UsageError(f"the task and its checks cannot be unpacked here: {type(e).__name__}: {e}") from e

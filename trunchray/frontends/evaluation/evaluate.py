"""One call that evaluates a function, an agent or a workflow: `trunchray.evaluate`.

spec ─▶ release, run and program ─▶ the engine ─▶ counted rows ─▶ outcomes ─▶ report, experiment file, EvalFailure
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from os import PathLike, fspath
from typing import Any, ParamSpec, TypeVar

from trunchray.adapters import disk
from trunchray.adapters.calling import in_thread
from trunchray.adapters.loops import refuse_running_loop
from trunchray.adapters.raised_at import named_from_here, raised_at
from trunchray.adapters.store import Store
from trunchray.core.evaluation import EvaluationReport, failure
from trunchray.core.names import nearest
from trunchray.engine.seating import PoolName
from trunchray.errors import Interrupted, TrunchrayError, UsageError
from trunchray.evaluators.python.scorer import needs_judge
from trunchray.frontends.evaluation.dataset import Data
from trunchray.frontends.evaluation.experiment_file import Comparable, write_experiment
from trunchray.frontends.evaluation.job import Job
from trunchray.frontends.evaluation.spec import read_spec
from trunchray.frontends.evaluation.watching import show

P = ParamSpec("P")
R = TypeVar("R")


class _Complete(Exception):
    """Carries the `result` of a call that was cancelled and has come to its end all the same."""

    def __init__(self, result: object) -> None:
        super().__init__("it had ended by then")
        self.result = result


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who called from a running event loop, and the flag that ends the evaluation."""

    loop: AbstractEventLoop | None = None
    stop: threading.Event = field(default_factory=threading.Event)


_caller: ContextVar[_Caller | None] = ContextVar("trunchray_caller", default=None)


def _plainly(call: Callable[P, R]) -> Callable[P, R]:
    """The same, which tells what it refuses without the errors of our own that led there."""
    known = inspect.signature(call).parameters

    @wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        for key in kwargs:
            if key not in known:
                raise TypeError(f"{call.__name__}() has no argument {key!r}{nearest(key, known)}")
        try:
            return call(*args, **kwargs)
        except UsageError as e:
            if not (e.__cause__ and raised_at(e.__cause__)):
                e.__cause__, e.__suppress_context__ = None, True
            raise

    return called


@_plainly
def evaluate(
    *,
    name: str,
    task: object,
    data: Data,
    scorers: Mapping[str, object] | None = None,
    allow: Mapping[str, object] | None = None,
    compare: Comparable | None = None,
    save: str | PathLike[str] | None = None,
    about: Mapping[str, object] | None = None,
    repeats: int = 1,
    concurrency: int = 4,
    timeout: str | float = "60s",
    judge: object = None,
    quiet: bool = False,
    pool: PoolName = "auto",
    address: str | None = None,
    out: str | PathLike[str] = "runs",
) -> EvaluationReport:
    """Run every case, check what came out, print a summary, and fail if a check misses or drops too many cases.

    `task` is a function `(input)` or `(input, signal)`, sync or async; an agent, anything with `send`; or a
    `workflow(…)`. `data` is a list of cases `{input, name?, expectedOutput?, must?, skip?, meta?}`, or the path or URI
    of a JSONL file of them. `scorers` maps names to checks: functions of the run, questions for the `judge`, or helpers
    such as `mentions`; without any, the output has to equal the `expectedOutput`.

    `allow` says for each check how many cases may miss it, 0 unless given: a number, or `{"miss": 3, "drop": 1}`, where
    drops are misses that passed in `compare`. That is an `Experiment` or the path or URI of one; a file that does not
    exist counts no drops. `save` is where this experiment is written, pass or fail, with `about`, a mapping of whatever
    JSON describes it.

    Each case is run `repeats` times (1 to 1,000), and passes a check if every attempt does. At most `concurrency` cases
    (1 to 100,000) are under way at a time. `timeout` bounds each run and each check: "60s", "500ms", "2m" or a number
    of milliseconds. `quiet` prints nothing but warnings.

    Results are kept below `out`, a folder or URI. If a call is interrupted, the same call continues it; once it has
    ended, with all saved, the same call starts afresh. `pool="ray"` runs it on a Ray that is started here, `address`
    on a cluster.

    Raises:
        EvalFailure: a limit is broken; its `report` is what would have been returned.
        UsageError: the evaluation cannot be run as asked; nothing was run.
        StoreError: the store refused or lost something; finished work is kept.
        Interrupted: not all cases could be run; the same call continues.
        KeyboardInterrupt: Ctrl-C or SIGTERM came while the last cases were under way; all of it is run and saved, and
            the same call tells it.
    """
    refuse_running_loop("evaluate")
    spec = read_spec(
        name=name,
        task=task,
        data=data,
        scorers=scorers,
        allow=allow,
        compare=compare,
        save=save,
        about=about,
        repeats=repeats,
        concurrency=concurrency,
        timeout=timeout,
        judge=judge,
    )
    caller, code = _caller.get() or _Caller(), (*spec.task.authored, *(scorers or {}).values())
    job = Job(spec, code, pool=pool, address=_address(address), out=_folder(out), quiet=quiet)
    report = job.run(caller.loop, caller.stop)
    _tell(report, "" if spec.compare or compare is None else str(compare), quiet=quiet)
    if spec.save is not None:
        write_experiment(spec.save, report.experiment)
        _warn_of_errors(spec.save, report, needs_judge(spec.scorers))
    failed = None if report.passed else failure(report)
    if caller.loop is None and caller.stop.is_set():  # by a signal: what follows is not to be begun
        said = (
            f"all cases of {spec.name!r} had been run; {named_from_here(report.run)} has what came of them, and the "
            "same call tells it without running them again"
        )
        raise KeyboardInterrupt(said) from failed
    job.end(report)
    if failed:
        raise failed
    return report


def _address(given: object) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise UsageError(f"address: expected the address of a Ray cluster, got {given!r:.60}")


def _folder(out: object) -> str:
    if not isinstance(out, str | PathLike) or not isinstance(place := fspath(out), str):
        raise UsageError(f"out: expected a folder or a URI, got {out!r:.60}")
    here = Store(place).folder
    if here and (closed := disk.unwritable(here)):
        raise UsageError(f"out: {place!r} cannot keep runs: {closed}; name another folder")
    return place


def _tell(report: EvaluationReport, missing: str, *, quiet: bool) -> None:
    """Print the summary; `missing` is the file to compare with that does not exist yet, or ""."""
    note = f"no drops were counted: there is no file {missing!r} yet\n" if missing else ""
    if quiet:  # which hides the summary, but not that nothing was compared
        sys.stderr.write(note)
    else:
        show(f"{report.text()}{note}run {named_from_here(report.run)}\n")


def _warn_of_errors(saved: str, report: EvaluationReport, asked: Collection[str]) -> None:
    """Say of an experiment that was saved how much of it is no answer of what was evaluated."""
    failed, undecided = sum(case.error is not None for case in report.cases), report.undecided(asked)
    parts = [f"{failed:,} run{'s' * (failed > 1)} that failed"] if failed else []
    parts += [f"{undecided:,} question{'s' * (undecided > 1)} that the judge did not decide"] if undecided else []
    if parts:
        sys.stderr.write(
            f"trunchray: {saved} counts as misses {' and '.join(parts)}: before you compare with it, see to it that "
            "these are no errors of a server or a key\n"
        )


def found_by_then(error: KeyboardInterrupt) -> EvaluationReport:
    """What an interrupted `aevaluate` has found, if all its cases had been run by then.

    Raises:
        EvalFailure: they had, and a limit is broken.
        Interrupted: they had not; it says how far it came.
    """
    said = error.__context__.__cause__ if error.__context__ else None
    if isinstance(said, _Complete) and isinstance(said.result, EvaluationReport):
        return said.result
    raise said if isinstance(said, TrunchrayError) else Interrupted("interrupted; the same command continues")


def _from_a_loop(call: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """The same, to be awaited: the local pool runs its coroutines on the loop of the caller."""

    @wraps(call)
    async def called(*args: P.args, **kwargs: P.kwargs) -> R:
        caller = _Caller(asyncio.get_running_loop())
        token = _caller.set(caller)
        try:
            work = asyncio.ensure_future(in_thread(partial(call, *args, **kwargs)))
        finally:
            _caller.reset(token)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError as e:
            caller.stop.set()
            await asyncio.wait({work})
            # Retrieved, too, so that asyncio does not log it: the caller asked for this end.
            raise e from (work.exception() or _Complete(work.result()))

    return called


aevaluate = _from_a_loop(evaluate)
"""`evaluate` for running event loops: async tasks and checks run on the loop of the caller."""

"""From a question to a report: prepare the run's folder, choose a pool, drive."""

from __future__ import annotations

import os
import signal
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event as Flag

from pydantic_core import from_json

from trunchray.adapters.lease import HeldLease, refuse_if_driven
from trunchray.adapters.models.connect import build_client
from trunchray.adapters.models.reachable import check_reachable
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.sandbox.launcher import Requirement
from trunchray.adapters.telemetry.connect import connect, refuse_untraceable
from trunchray.core.agent import AgentSpec, ModelAgent, PythonAgent
from trunchray.core.budget import Purse
from trunchray.core.estimate import ModelEstimate
from trunchray.core.grader_spec import GraderSpec, ModelGrader
from trunchray.core.plan import Plan, make_plan
from trunchray.core.report import Report
from trunchray.core.run import Aim, RunSpec, extend
from trunchray.core.telemetry import SILENCE, Observe, Telemetry
from trunchray.core.wording import way_to_run_again
from trunchray.engine.aggregate import aggregate, publish
from trunchray.engine.local import LocalPool
from trunchray.engine.program import Program, required
from trunchray.engine.progress import Snapshot, Terms, question
from trunchray.engine.run import Observer, Pool, Run
from trunchray.engine.seating import PoolName, Seating
from trunchray.engine.spending import Balance, Spending, estimate
from trunchray.engine.stored import counting_commits, open_run
from trunchray.engine.worker import WorkerConfig
from trunchray.errors import UsageError

RAY_FROM = 1000
"""With `pool: auto`, models are asked more trials than this on Ray: starting it costs ten seconds and more."""


@dataclass(frozen=True)
class Launch:
    """How a run is carried out, as opposed to what it asks."""

    out: str
    """The folder that holds runs."""
    observer: Observer
    pool: PoolName = "auto"
    address: str | None = None
    """A Ray cluster; None for this machine."""
    seating: Seating = field(default_factory=Seating)
    """How many Ray workers, and what each takes of its machine; this machine is not asked for other resources."""
    takeover: bool = False
    """Take the lease even when another driver seems to be at work."""
    require: Requirement = "none"
    """The walls without which no worker runs author code."""
    cache: str | None = None
    """The store of answers that need not be asked for again."""
    spending: Spending = field(default_factory=Spending)
    """What the run may cost."""
    command: str = ""
    """How to give the command again, for those who look on; it holds no credential."""
    observe: Observe = field(default_factory=Observe)
    """What is told of it, and to whom."""
    aim: Aim = "run"
    """Which trials are done. Unless it is "run", the run has to be there."""
    at: str | None = None
    """The run's folder, when it is another one than that of its name in `out`."""
    program: Program | None = None
    """The code of a Python evaluation."""
    loop: AbstractEventLoop | None = None
    """Where the local pool runs it, in another thread than the one that drives; None: on a loop of its own."""
    stop: Flag = field(default_factory=Flag)
    """Set it to end the run early; the same launch goes on from there."""


def launch(spec: RunSpec, release: StoredRelease, inputs: Mapping[str, bytes], how: Launch) -> Report:
    """Run what is not yet counted and report what is.

    `inputs` holds the files that agents need, by SHA-256; the run keeps them.

    Raises:
        UsageError: the run cannot be carried out as asked; nothing was run.
        StoreError: the store refused or lost something; finished work is kept.
        Interrupted: another driver took over, or all workers are gone.
    """
    cases = release.cases()
    index, sources = cases.index, release.sources(cases)
    make_plan(spec, index)  # an impossible selection is refused before anything is written
    if how.pool == "local" and how.address:
        raise UsageError(f"address {how.address!r} names a Ray cluster, which pool 'local' does not use; leave one out")
    for agent in spec.agents:
        if isinstance(agent, PythonAgent):
            required(how.program, agent)
    how.spending.refuse_unpriced(spec.agents)
    refuse_untraceable(how.observe)
    folder = RunFolder(how.at or f"{how.out}/{spec.run_id}")
    extended = _extended(folder, spec)  # so is another question
    if how.address is None and (spec.grading or _asks(spec, how)):
        _check(_unfinished(spec.agents, make_plan(extended, index), folder), spec, inputs, how)
    lease = HeldLease.take(folder.store, takeover=how.takeover, pause=how.stop.wait, note=how.observer.note)
    telemetry: Telemetry = SILENCE
    if not folder.store.conditional:
        how.observer.warn(
            f"{folder.uri}: this store does not heed If-None-Match: of two commands started on one run at the same "
            "moment both may pay for a while; every trial still counts once"
        )
    try:
        # Read again: whoever drove the run until now may have extended it.
        stored = folder.spec()
        whole = extend(stored, spec, at=folder.uri) if stored else spec
        for content in inputs.values():
            folder.keep_input(content)
        if whole != stored:
            folder.freeze(whole, first=stored is None)
        plan = make_plan(whole, index, sources)
        wanted = [agent.name for agent in spec.agents]
        balance = Balance.open(plan, folder, release, how.spending)
        if balance.warning:
            how.observer.warn(balance.warning)
        on_ray = not _is_local(plan, how)
        before = None if how.aim == "run" else Snapshot.read(folder.progress())
        telemetry = connect(how.observe, run=whole.run_id, worker="driver", on_ray=on_ray, driver=True)
        return Run(
            plan,
            folder,
            lease=lease,
            open_pool=_pool(plan, folder, release, how, balance, wanted=wanted),
            wanted=wanted,
            observer=how.observer,
            stop=how.stop,
            stored=balance.stored,
            closed=balance.closed(wanted),
            terms=before.terms if before else Terms(how.spending.whole, how.spending.each, how.command),
            telemetry=telemetry,
            aim=how.aim,
            reasons=before.closed if before else None,
        )()
    finally:
        telemetry.close()
        lease.release()


def check(spec: RunSpec, release: StoredRelease, out: str, *, takeover: bool = False) -> None:
    """Refuse what `launch` would refuse, but for what only the machines can tell that carry it out. Writes nothing.

    Raises:
        UsageError: the run cannot be carried out as asked, or is being driven by somebody.
    """
    folder = RunFolder(f"{out}/{spec.run_id}")
    make_plan(_extended(folder, spec), release.cases().index)
    if not takeover:
        refuse_if_driven(folder.store)


def estimate_cost(
    spec: RunSpec,
    release: StoredRelease,
    run_uri: str,
    *,
    pilot: int | None = None,
    aim: Aim = "run",
    inputs: Mapping[str, bytes] | None = None,
) -> list[ModelEstimate]:
    """What the trials of the models of `spec` will cost that are done in the run at `run_uri`. Writes nothing.

    Of a `pilot` of so many trials of each model, only those that it runs. `inputs` as in `launch`.

    Raises:
        UsageError: the run cannot be carried out as asked.
    """
    folder = RunFolder(run_uri)
    plan = make_plan(_extended(folder, spec), release.cases().index)
    wanted = {agent.name for agent in spec.agents}
    return [one for one in estimate(plan, folder, release, pilot=pilot, aim=aim, inputs=inputs) if one.name in wanted]


def _extended(folder: RunFolder, wanted: RunSpec) -> RunSpec:
    stored = folder.spec()
    return extend(stored, wanted, at=folder.uri) if stored else wanted


def report_again(run_uri: str, warn: Callable[[str], None]) -> Report:
    """Count a run's committed rows anew and rewrite its report; `warn` is told about rows that cannot be counted.

    Raises:
        UsageError: there is no run at `run_uri`.
        ReleaseError: its release is gone or damaged.
    """
    folder, plan = open_run(run_uri)
    last = Snapshot.read(folder.progress())
    result = aggregate(plan, folder, closed=last.closed if last else None)
    for shard, paths in result.damaged.items():
        warn(
            f"shard {shard}: {'; '.join(paths)}: missing or damaged, its trials are not counted; "
            f"{way_to_run_again(plan.spec)}"
        )
    return publish(result.report, folder)


def is_finished(spec: RunSpec, release: StoredRelease, out: str) -> bool:
    """Whether the command would do nothing: its models have no trial to run, and their report counts all of them.

    That no part has changed since then is not looked at; `report` finds out, and then it is not finished.

    Raises:
        UsageError: the run cannot be carried out as asked.
    """
    folder = RunFolder(f"{out}/{spec.run_id}")
    stored, last = folder.spec(), Snapshot.read(folder.progress())
    if stored is None or last is None or not last.final or last.question != question(stored):
        return False
    plan = make_plan(extend(stored, spec, at=folder.uri), release.cases().index)
    names = {agent.name for agent in spec.agents}
    return _is_reported(names, folder) and not _unfinished(spec.agents, plan, folder) and _is_there(names, plan, folder)


def _is_reported(names: Collection[str], folder: RunFolder) -> bool:
    """Whether the last report counts all trials of these models; what is lost or damaged it does not count."""
    try:
        models = from_json(folder.store.read("report/summary.json"))["models"]
        not_run = {model["name"]: model["not_run"] for model in models}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False
    return all(not_run.get(name) == 0 for name in names)


def _is_there(names: Collection[str], plan: Plan, folder: RunFolder) -> bool:
    """Whether all parts are there that the commits of these models name."""
    commits, stored = counting_commits(plan, folder, names), set(folder.store.find("parts"))
    return all(part.path in stored for receipt in commits.values() for part in receipt.parts)


def _unfinished(agents: Sequence[AgentSpec], plan: Plan, folder: RunFolder) -> list[AgentSpec]:
    """Those of the agents that have trials to run, or to run again, by the commits that there are."""
    # To look whether all commits count would take longer than it is worth.
    commits = folder.commits()
    receipts = ((shard.agent.name, commits.get(shard.id)) for shard in plan.shards)
    owing = {name for name, of in receipts if of is None or of.missing or of.counts.retryable}
    return [agent for agent in agents if agent.name in owing]


def check_grader(spec: GraderSpec) -> None:
    """Find out that a key or a command is missing, or that nobody listens.

    Raises:
        UsageError: so it is.
    """
    from trunchray.evaluators.attempts.build import build_grader  # noqa: PLC0415 - few runs have one

    build_grader(spec).check()
    if isinstance(spec, ModelGrader):
        check_reachable(spec.model)


def _check(agents: Sequence[AgentSpec], spec: RunSpec, inputs: Mapping[str, bytes], how: Launch) -> None:
    """Find out before the first trial that one of those who are asked for it cannot be asked."""
    if spec.grading and agents:
        check_grader(spec.grading)
    if _asks(spec, how):
        _check_models(agents, inputs)


def _check_models(agents: Iterable[AgentSpec], inputs: Mapping[str, bytes]) -> None:
    """Find out that a key is missing or that nobody listens."""
    for agent in agents:
        if not isinstance(agent, ModelAgent):
            continue
        replay = inputs.get(agent.mock.replay) if agent.mock and agent.mock.replay else None
        build_client(agent, environ=os.environ, replay=replay)
        check_reachable(agent)


def _pool(
    plan: Plan, folder: RunFolder, release: StoredRelease, how: Launch, balance: Balance, *, wanted: Sequence[str]
) -> Callable[[], Pool]:
    """Opens a pool: the first one goes on from `balance`, a later one from what is stored by then."""
    balances = [balance]

    def purse() -> Purse | None:
        return (balances.pop() if balances else Balance.open(plan, folder, release, how.spending)).purse

    config = WorkerConfig(how.require, how.cache, how.observe, how.aim, how.program)
    if _is_local(plan, how):
        return lambda: LocalPool(folder.uri, release.uri, config, purse=purse(), loop=how.loop)

    def ray_pool() -> Pool:
        how.observer.note(
            "connecting to Ray …" if how.address else "starting Ray on this machine (about ten seconds) …"
        )
        with _own_sigterm():
            # Ray takes a second to import.
            from trunchray.engine.cluster import RayPool  # noqa: PLC0415
            from trunchray.engine.ray_crew import Voice  # noqa: PLC0415
            from trunchray.engine.ray_program import packed  # noqa: PLC0415

            return RayPool(
                folder.uri,
                release.uri,
                replace(config, program=packed(how.program)) if how.program else config,
                address=how.address,
                seating=how.seating if how.address else how.seating.model_copy(update={"resources": {}}),
                agents=wanted,
                purse=purse(),
                voice=Voice(how.observer.note, how.observer.warn),
            )

    return ray_pool


def _is_local(plan: Plan, how: Launch) -> bool:
    if how.pool != "auto":
        return how.pool == "local"
    asks = _asks(plan.spec, how) or plan.spec.grading is not None  # whoever is asked to grade takes his time as well
    return not how.address and (plan.trials <= RAY_FROM or how.program is not None or not asks)


def _asks(spec: RunSpec, how: Launch) -> bool:
    """Whether models are asked; else only stored answers are graded, which code does in no time on Ray's scale."""
    return how.aim != "regrade" and spec.regrades is None


@contextmanager
def _own_sigterm() -> Generator[None]:
    """Keep the driver's handler, which stores what is finished: Ray puts its own in place while it starts."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)

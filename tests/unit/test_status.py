"""What is known of a run from its folder alone, and what people see of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.made_runs import make_run
from support.releases import make_release
from support.terminal import Terminal
from trunchray.adapters.lease import HeldLease
from trunchray.adapters.runs import RunFolder
from trunchray.adapters.store import Store
from trunchray.cli.output import Output
from trunchray.cli.screen import console
from trunchray.cli.states import StatusView, status_line
from trunchray.cli.watching import EVERY, Watch, described
from trunchray.core.agent import Mock, ModelAgent
from trunchray.core.budget import Budget
from trunchray.core.closing import remedy
from trunchray.core.lease import Lease
from trunchray.core.receipt import Counts
from trunchray.core.run import Regrades, RunSpec
from trunchray.engine.blocks import blocks
from trunchray.engine.governor import Standing
from trunchray.engine.progress import AgentProgress, NodeStanding, Snapshot, question
from trunchray.engine.status import SECOND_LOOK, Status, StatusReader
from trunchray.engine.stored import open_run
from trunchray.errors import StoreError, UsageError

AGENTS = (ModelAgent(name="a", model="mock/echo"), ModelAgent(name="b", model="mock/echo", mock=Mock(seed=1)))
SPEC = RunSpec(run_id="r", title="T", release="memory://gone", release_digest="d", agents=AGENTS)
NODE = NodeStanding(node="n", workers=1)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """The time of this machine, as a date and in seconds; `off` is by how much it is wrong."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.off = timedelta(0)

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds) + self.off

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Driver:
    """What a driver on another machine would store, whose clock is right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.folder = RunFolder(f"memory://{uuid.uuid4().hex}")
        self.folder.freeze(SPEC)

    def beats(self, **changes: Any) -> None:
        at = BEGAN + timedelta(seconds=self._clock.seconds)
        lease = Lease(driver="far:1:a", host="far", pid=1, epoch=1, heartbeat=at).model_copy(update=changes)
        self.folder.store.write("lease.json", lease.model_dump_json().encode())

    def gives_back(self) -> None:
        self.beats(ended=True)

    def tells(self, *agents: AgentProgress, **fields: Any) -> None:
        at = BEGAN + timedelta(seconds=self._clock.seconds)
        snapshot = Snapshot(run_id="r", question=question(SPEC), agents=agents or (done(0),), at=at, nodes=(NODE,))
        self.folder.write_progress(snapshot.model_copy(update=fields).model_dump(mode="json"))


def done(rows: int, *, hand: int = 0, planned: int = 10, name: str = "a", **fields: Any) -> AgentProgress:
    """A model of which so many rows count, and some more are in hand."""
    counted = Counts(passed=rows)
    return AgentProgress(name=name, planned=planned, counts=Counts(passed=rows + hand), counted=counted, **fields)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def driver(clock: Clock) -> Driver:
    return Driver(clock)


@pytest.fixture
def reader(driver: Driver, clock: Clock) -> StatusReader:
    return StatusReader(driver.folder.uri, now=clock.now, clock=clock)


def test_a_run_that_is_driven(driver: Driver, reader: StatusReader, clock: Clock):
    """What its driver said last, and how long ago its heart beat; its release is not needed."""
    driver.beats()
    driver.tells(done(4, hand=3, per_minute=6.0))
    clock.seconds = 3
    status = reader.read()
    assert (status.state, status.driver, status.heartbeat_age, status.age) == ("running", "far:1:a", 3, 3)
    assert status.latest
    assert (status.committed.rows, status.latest.rows, status.eta) == (4, 7, 30)


def test_each_look_reads_two_small_objects(driver: Driver, reader: StatusReader, monkeypatch: pytest.MonkeyPatch):
    """Whatever the size of the run: nothing is listed, and the question is read once."""
    driver.beats()
    driver.tells(done(4))
    asked: list[str] = []
    tried = Store._try

    def counted(store: Store, path: str, action: Callable[[], Any]) -> Any:
        asked.append(path)
        return tried(store, path, action)

    monkeypatch.setattr(Store, "_try", counted)  # how operations are counted
    reader.read()
    assert asked == ["lease.json", "progress.json", "run.json"]
    asked.clear()
    reader.read()
    assert asked == ["lease.json", "progress.json"]


@pytest.mark.parametrize("off", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_is_an_hour_off(off: timedelta, driver: Driver, reader: StatusReader, clock: Clock):
    """A heart that is seen to beat beats, whatever time it shows; no age is negative, and the difference is told."""
    driver.beats()
    driver.tells(done(4))
    clock.off = off
    first = reader.read()
    assert (first.state, first.lost, reader.doubtful) == ("waiting", "far:1:a", True)
    clock.sleep(SECOND_LOOK)
    driver.beats()
    driver.tells(done(5))
    clock.sleep(2)
    status = reader.read()
    assert status.state == "running"
    assert status.clock_ahead == pytest.approx(-off.total_seconds() - 2)
    assert (status.heartbeat_age, status.age) == (0, 0)
    side = "behind" if off > timedelta(0) else "ahead of"
    assert f"the driver's clock is {'1:00:02' if off > timedelta(0) else '59:58'} {side} this machine's" in blocks(
        status
    )


def test_a_driver_that_was_killed(tmp_path: Path, clock: Clock):
    """What it had not come to say is counted once, from the commits, and the run waits."""
    release = make_release(tmp_path / "releases", 4)
    uri = make_run(tmp_path / "r", release, {"m": ["p", "f", "-", "-"]})
    folder = RunFolder(uri)
    spec = folder.spec()
    assert spec
    lease = Lease(driver="far:1:a", host="far", pid=1, epoch=1, heartbeat=BEGAN)
    folder.store.write("lease.json", lease.model_dump_json().encode())
    agent = AgentProgress(name="m", planned=4)
    told = Snapshot(run_id="r", question=question(spec), agents=(agent,), at=BEGAN, command="trunchray run x.yaml")
    folder.write_progress(told.model_dump(mode="json"))
    reader = StatusReader(uri, now=clock.now, clock=clock)
    assert reader.read().state == "running"
    clock.seconds = 50
    status = reader.read()
    assert (status.state, status.committed.rows, status.lost, reader.doubtful) == ("waiting", 2, "far:1:a", False)
    assert blocks(status) == [
        "nobody drives it: far:1:a is gone (last heartbeat 50 s ago); `trunchray run x.yaml` continues it"
    ]
    (tmp_path / "r" / "commits").rename(tmp_path / "r" / "elsewhere")
    assert reader.read().committed.rows == 2


def test_a_driver_that_ended_in_order(driver: Driver, reader: StatusReader):
    """It has said all there is: nothing is counted, and nobody is missed."""
    driver.gives_back()
    driver.tells(done(4), final=True)
    status = reader.read()
    assert (status.state, status.driver, status.lost, status.committed.rows) == ("waiting", None, None, 4)
    assert blocks(status) == ["nobody drives it; the same `trunchray run` command continues it"]
    command = "trunchray run s3://b/.jobs/0/run.yaml --address auto --yes"  # as a job of a cluster gives it
    job = status.model_copy(update={"latest": Snapshot(run_id="r", agents=(), command=command)})
    how = f"submitting it again continues it, and so does `{command}` on a node of its cluster"
    how += "; what stopped it, `trunchray jobs` and `logs` say"
    assert blocks(job)[0] == f"nobody drives it; {how}"
    assert not reader.doubtful
    driver.tells(done(10), final=True)
    assert reader.read().state == "complete"
    assert blocks(reader.read()) == []


def test_a_driver_of_this_machine_that_is_gone(driver: Driver, reader: StatusReader, clock: Clock):
    """Nobody waits to see its heart beat."""
    lease = HeldLease.take(driver.folder.store, now=clock.now).lease
    driver.tells(done(10), final=True)
    assert reader.read().state == "complete"
    driver.folder.store.write("lease.json", lease.model_copy(update={"pid": 2**22 + 1}).model_dump_json().encode())
    driver.tells(done(9), final=True)
    assert (reader.read().state, reader.doubtful) == ("waiting", False)


def test_a_run_that_was_extended(driver: Driver, reader: StatusReader):
    """A snapshot of the smaller question is not taken for one of the larger."""
    driver.beats()
    driver.tells(done(10))
    assert reader.read().committed.planned == 10
    larger = SPEC.model_copy(update={"attempts": 2})
    driver.folder.freeze(larger)
    driver.tells(done(10, planned=20), question=question(larger))
    assert reader.read().committed.planned == 20


def status(*agents: AgentProgress, **fields: Any) -> Status:
    """A run that is driven."""
    latest = Snapshot(run_id="r", agents=agents, nodes=fields.pop("nodes", (NODE,)))
    changes = {name: fields.pop(name) for name in ("final", "budget", "command") if name in fields}
    latest = latest.model_copy(update=changes)
    common: dict[str, Any] = {"run": "r", "uri": "/r", "release_digest": "d", "state": "running", "driver": "h:1:a"}
    heart = {"heartbeat": BEGAN, "heartbeat_age": 2.0, "age": 1.0}
    return Status(**common | heart | {"committed": latest.committed(), "latest": latest} | fields)


COOLING = Standing(permits=4, in_flight=2, waiting=7, cooling_for=30, rate=2, error="rate_limited: no", error_age=1)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (status(done(3)), []),
        (status(done(10)), ["all trials are counted; the report is being written"]),
        (status(done(3), final=True), ["its driver is starting"]),
        (status(done(3), nodes=()), ["no worker yet: workers are starting, or wait for nodes with room for them"]),
        (
            status(done(3), nodes=(NodeStanding(node="n", workers=2, down=2),)),
            ["no worker answers: waiting for nodes"],
        ),
        (status(done(3), age=90.0), ["the driver has said nothing for 1:30"]),
        (status(done(3, standing=COOLING)), ["a: 7 requests wait until it has cooled, 30 s"]),
        (
            status(done(3, per_minute=0.0, standing=Standing(permits=4, in_flight=1, oldest=300))),
            ["a: no trial ended in the last minute; the oldest began 5:00 ago"],
        ),
        (
            status(AgentProgress(name="a", planned=10, counts=Counts(passed=2, error=4))),
            ["a: 4 of 6 trials ended in an error"],
        ),
        (
            status(done(3, standing=Standing(permits=0, closed="budget"))),
            [
                "no model is asked any more; what is in flight ends",
                "a: no further trial is begun (budget); a larger budget continues it",
            ],
        ),
        (
            status(done(3, standing=Standing(permits=0, closed="uncounted", why="3 of 80 answers did not say"))),
            [
                "no model is asked any more; what is in flight ends",
                f"a: no further trial is begun (3 of 80 answers did not say); {remedy('uncounted')}",
            ],
        ),
    ],
)
def test_what_blocks(found: Status, said: list[str]):
    """Each thing that keeps a run from going on is one sentence; one that is well has none."""
    assert blocks(found) == said


def test_a_complete_run_with_errors(tmp_path: Path, clock: Clock):
    """Errors that can be mended are counted by what mends them, as is said where there is none; one is not reported."""
    release = make_release(tmp_path / "releases", 4)
    uri = make_run(tmp_path / "r", release, {"m": "pfee"})
    folder = RunFolder(uri)
    spec = folder.spec()
    assert spec
    counts = Counts(passed=1, failed=1, error=2, retryable=1)
    agent = AgentProgress(name="m", planned=4, counts=counts, counted=counts)
    told = Snapshot(run_id="r", question=question(spec), agents=(agent,), at=BEGAN, final=True)
    folder.write_progress(told.model_dump(mode="json"))
    reader = StatusReader(uri, now=clock.now, clock=clock)
    once = "1 trial ended in an error whose cause may be gone: "
    assert blocks(reader.read()) == [f"{once}`trunchray retry {uri}` asks again"]
    other = AgentProgress(name="b", planned=4, counts=counts, counted=counts, spent_usd=0.03)
    two = reader.read().model_copy(update={"committed": told.model_copy(update={"agents": (agent, other)})})
    twice = "2 trials ended in an error whose cause may be gone (m 1, b 1): "
    assert blocks(two)[0] == f"{twice}`trunchray retry {uri}` asks again, for about $0.0150"
    assert (described(two)["retry_usd"], described(reader.read())["retry_usd"]) == (0.015, None)
    kinds = [{"kind": kind, "count": 1, "example": "x"} for kind in ("provider/timeout", "evaluator/crashed")]
    folder.write_report("summary.json", json.dumps({"models": [{"errors": kinds}]}).encode())
    found = reader.read()
    mended = f"once the evaluator is mended, `trunchray regrade {uri} --release PATH` grades it"
    assert blocks(found)[1:] == [f"1 answer could not be graded, which asking again does not mend: {mended}"]
    assert status_line(found).startswith(f"r: complete with errors; 4 of 4 trials counted; {once}")
    assert status_line(found).endswith(mended)
    value = described(found)
    assert [value[name] for name in ("state", "errors", "retryable", "ungraded")] == ["complete", 2, 1, 1]
    folder.freeze(spec.model_copy(update={"regrades": Regrades(run="s")}))
    folder.write_progress(told.model_copy(update={"question": question(folder.spec() or spec)}).model_dump(mode="json"))
    regrade = StatusReader(uri, now=clock.now, clock=clock).read()
    assert blocks(regrade)[0] == f"{once}`trunchray retry s` asks again, and the regrade command then grades anew"


def shown(found: Status, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    StatusView(console(terminal), found).show()
    return [line.rstrip() for line in terminal.text().splitlines()]


def test_a_state_on_a_screen(monkeypatch: pytest.MonkeyPatch):
    """Who drives, how fast, what it costs, each model and where it runs."""
    agent = done(3, hand=2, in_flight=2, spent_usd=0.5, per_minute=6.0, tokens_per_minute=90.0, standing=COOLING)
    nodes = (NodeStanding(node="n", workers=2, down=1, shards=3), NodeStanding(node="o", workers=1, draining=True))
    lines = shown(status(agent, budget=Budget(usd=2), nodes=nodes), 140, monkeypatch)
    assert lines[:4] == [
        "r: running, driven by h:1:a (heartbeat 2 s ago)",
        "3 of 10 trials counted, 2 more in progress; 6 trials/min, 90 tokens/min, ETA 0:50",
        "spent $0.5000 of $2.0000",
        "! a: 7 requests wait until it has cooled, 30 s",
    ]
    head, row = (" ".join(line.split()) for line in lines[4:6])
    assert head == "model planned counted passed failed error in progress in flight /min ETA cost $"
    assert row == "a 10 3 3 0 0 2 2 6 0:50 0.5000"
    assert lines[6].startswith(
        "a: 2 requests in flight of 4 permitted; 7 waiting; 120 requests a minute; cooling for 30 s"
    )
    assert lines[7:] == [
        "node n: 2 workers (1 not answering), 3 shards in work",
        "node o: 1 worker, 0 shards in work; leaving, gets nothing more",
    ]


@pytest.mark.parametrize("columns", [60, 80])
def test_a_state_on_a_narrow_screen(columns: int, monkeypatch: pytest.MonkeyPatch):
    """No line is too long, and what there is no room for is named."""
    many = [
        done(1_234_567, planned=9_999_999, name=f"provider/model-{n}" + "-long" * 5, per_minute=60.0) for n in range(20)
    ]
    lines = shown(status(*many), columns, monkeypatch)
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("no room for: ") for line in lines)


def test_many_nodes_are_summed_up(monkeypatch: pytest.MonkeyPatch):
    """A line for each of a hundred machines would leave nothing else on the screen."""
    nodes = tuple(NodeStanding(node=str(n), workers=4, down=n == 0, shards=8, draining=n == 1) for n in range(100))
    lines = shown(status(done(3), nodes=nodes), 140, monkeypatch)
    assert lines[-1] == "100 nodes: 400 workers (1 not answering), 800 shards in work; 1 leaving"


def test_names_are_no_markup(monkeypatch: pytest.MonkeyPatch):
    """A model may be called anything."""
    assert any("[b]m" in line for line in shown(status(done(3, name="[b]m")), 140, monkeypatch))


def watch(driver: Driver, clock: Clock, events: dict[float, Callable[[], None]], *, as_json: bool = False) -> Watch:
    """A watch during which something happens at some times."""

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        for at in [at for at in events if at <= clock.seconds]:
            events.pop(at)()

    reader = StatusReader(driver.folder.uri, now=clock.now, clock=clock)
    return Watch(Output(as_json=as_json), reader, sleep=sleep, clock=clock)


def test_watching_until_a_run_is_complete(driver: Driver, clock: Clock, capsys: pytest.CaptureFixture[str]):
    """Where there is no terminal a line says what has changed, with the time, and the last one how it ended."""
    driver.beats()
    driver.tells(done(4))

    def end() -> None:
        driver.tells(done(10), final=True)
        driver.gives_back()

    ended = watch(driver, clock, {5: driver.beats, 10: driver.beats, 15: lambda: driver.tells(done(6)), 20: end})()
    assert ended.state == "complete"
    said = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "r: running; 4 of 10 trials counted",
        "r: running; 4 of 10 trials counted",
        "r: complete; 10 of 10 trials counted",
    ]


def test_watching_a_run_that_nobody_drives(driver: Driver, clock: Clock, capsys: pytest.CaptureFixture[str]):
    """It is given up once nobody has gone on with it for a while, not in the moment between two drives."""
    driver.gives_back()
    driver.tells(done(4), final=True)
    assert watch(driver, clock, {4: driver.beats, 8: driver.gives_back})().state == "waiting"
    assert clock.seconds >= 8 + SECOND_LOOK
    assert "nobody drives it" in capsys.readouterr().out.splitlines()[-1]


def test_watching_for_programs(driver: Driver, clock: Clock, capsys: pytest.CaptureFixture[str]):
    """One JSON object a line, for each state that says something new."""
    driver.beats()
    driver.tells(done(4))
    watch(driver, clock, {7: lambda: driver.tells(done(10), final=True)}, as_json=True)()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["state"], line["committed"]["agents"][0]["counts"]["passed"]) for line in lines] == [
        ("running", 4),
        ("complete", 10),
    ]
    assert lines[0]["blocks"] == []


def test_a_store_that_does_not_answer_for_a_while(
    driver: Driver, clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Who looks on from afar is told, and looks again; from the start it is an error."""
    driver.beats()
    driver.tells(done(4))

    class Silent(StatusReader):
        looks = 0

        def read(self) -> Status:
            self.looks += 1
            if self.looks == 2:
                raise StoreError("no answer")
            if self.looks == 3:
                driver.tells(done(10), final=True)
            return super().read()

    reader = Silent(driver.folder.uri, now=clock.now, clock=clock)
    assert Watch(Output(as_json=False), reader, sleep=clock.sleep, clock=clock)().state == "complete"
    assert capsys.readouterr().err == "no answer; looking again\n"
    assert clock.seconds == 2 * EVERY
    with pytest.raises(UsageError, match="it holds no run"):
        Watch(Output(as_json=False), StatusReader("memory://nothing"), sleep=clock.sleep, clock=clock)()


def test_a_line_for_logs():
    """All that matters, on one line."""
    found = status(done(3, hand=2), state="waiting", driver=None, command="trunchray run x.yaml")
    assert status_line(found) == (
        "r: incomplete; 3 of 10 trials counted, 2 more had ended when last heard of; those that were stored by then "
        "are not asked again; nobody drives it; `trunchray run x.yaml` continues it"
    )
    ended = status(done(3, hand=2), state="waiting", driver=None, command="trunchray run x.yaml", final=True)
    assert "3 of 10 trials counted, 2 more stored and not yet counted; nobody" in status_line(ended)


def test_a_name_that_is_only_the_beginning_of_a_runs():
    """The runs beside it are suggested whose names go on after it, as those of an evaluation do."""
    root = Store(f"memory://{uuid.uuid4().hex}")
    for name in ("slow-0123456789-001", "slow-0123456789-002", "slower", "other"):
        root.write(f"{name}/run.json", b"{}")
    root.write("slow-cases/cases.jsonl", b"")
    with pytest.raises(UsageError) as refused:
        open_run(f"{root.uri}/slow")
    first, second = (f"{root.uri}/slow-0123456789-{number}" for number in ("001", "002"))
    assert str(refused.value).endswith(f"it holds no run.json; did you mean {first!r} or {second!r}?")
    with pytest.raises(UsageError, match="give the folder <out>/<run id>"):
        open_run(f"{root.uri}/fast")

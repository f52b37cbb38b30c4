"""Progress as people see it: a table that moves on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import pytest

from support.terminal import Terminal
from trunchray.cli.live import LiveProgress
from trunchray.cli.output import Output
from trunchray.cli.screen import console
from trunchray.core.budget import Budget
from trunchray.core.receipt import Counts
from trunchray.engine.governor import Standing
from trunchray.engine.progress import AgentProgress, Snapshot
from trunchray.engine.rates import Rates


class Clock:
    """Seconds, as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def snapshot(rows: int = 0, *, error: int = 0, tokens: int = 0, planned: int = 400, name: str = "m") -> Snapshot:
    counts = Counts(passed=rows - error, error=error, tokens=tokens)
    return Snapshot(run_id="r", agents=(AgentProgress(name=name, planned=planned, counts=counts, in_flight=8),))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def shown(clock: Clock, *snapshots: tuple[float, Snapshot]) -> Terminal:
    """What a terminal shows of snapshots at times."""
    terminal = Terminal()
    output = Output(as_json=False)
    output.stderr = console(terminal)
    began = clock.now
    with LiveProgress(output, clock) as live:
        rates = Rates()
        for at, seen in snapshots:
            clock.now = began + at
            live.progress(rates.rated(clock.now, seen))
    return terminal


@pytest.fixture(params=[140])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of the terminal."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("TERM", "xterm")
    return request.param


def lines(clock: Clock, capsys: pytest.CaptureFixture[str], *agents: AgentProgress, seconds: int = 31) -> list[str]:
    """What a log gets of models that each get one more row a second."""
    rates = Rates()
    with LiveProgress(Output(as_json=False), clock) as live:
        for second in range(seconds):
            clock.now = 1000.0 + second
            more = Counts(passed=second, tokens=10 * second)
            grown = tuple(one.model_copy(update={"counts": one.counts + more}) for one in agents)
            live.progress(rates.rated(clock.now, Snapshot(run_id="r", agents=grown)))
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_line_every_ten_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """Without a terminal, a log gets one short line every ten seconds, with what the run is about."""
    assert lines(clock, capsys, AgentProgress(name="m", planned=40, counts=Counts(error=2))) == [
        "[0:10] r: 12/40 trials, 2 errors, 60 trials/min, 600 tokens/min, ETA 0:28",
        "[0:20] r: 22/40 trials, 2 errors, 60 trials/min, 600 tokens/min, ETA 0:18",
        "[0:30] r: 32/40 trials, 2 errors, 60 trials/min, 600 tokens/min, ETA 0:08",
    ]


def test_lines_of_models(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """Each of several models has a line once a minute; what holds one up is said when it is news."""
    agents = [
        AgentProgress(name="a", planned=400),
        AgentProgress(name="b", planned=400, standing=Standing(permits=1, cooling_for=9)),
    ]
    said = lines(clock, capsys, *agents, seconds=81)
    assert [line.partition(":")[0] for line in said if line.startswith("  ")] == ["  a", "  b", "  b"] * 2
    assert said[1:4] == [
        "  a: 10/400, passed 10, errors 0; 60/min, ETA 6:30",
        "  b: 10/400, passed 10, errors 0; 60/min, ETA 6:30",
        "  b: cooling for 9 s",
    ]
    assert max(map(len, said)) < 100


def test_errors_that_are_asked_again_are_not_done(clock: Clock, columns: int, capsys: pytest.CaptureFixture[str]):
    """A retry shows what it has before it, and not a run that is done."""
    retried = AgentProgress(name="m", planned=5, counts=Counts(passed=3, error=2), again=2)
    shown_of = shown(clock, (0, Snapshot(run_id="r", agents=(retried,))))
    assert shown_of.text().split()[-8:] == ["3", "5", "3", "2", "0", "0", "–", "–"]
    clock.now = 1000.0
    live = LiveProgress(Output(as_json=False), clock)
    clock.now += 10
    live.progress(Snapshot(run_id="r", agents=(retried,)))
    assert capsys.readouterr().err == "[0:10] r: 3/5 trials, 2 errors\n"


def test_a_short_run_says_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """What takes less than ten seconds needs no progress."""
    with LiveProgress(Output(as_json=False), clock) as live:
        live.progress(snapshot(1))
        clock.now += 9
        live.progress(snapshot(400))
    assert capsys.readouterr() == ("", "")


def test_the_table(clock: Clock, columns: int):
    """On a terminal each model has its figures, to the right under their names."""
    terminal = shown(clock, (0, snapshot()), (10, snapshot(100, error=20, tokens=12345)))
    head, row = [line.rstrip() for line in terminal.text().splitlines() if line.strip()][-2:]
    assert head.split() == ["model", "done", "of", "passed", "errors", "tokens", "in", "flight", "/min", "ETA"]
    assert row.split() == ["m", "100", "400", "80", "20", "12,345", "8", "600", "0:30"]
    assert len(head) == len(row) <= columns
    assert "r  0:10" in terminal.text()


@pytest.mark.parametrize("columns", [60, 80], indirect=True)
def test_the_table_in_a_narrow_terminal(clock: Clock, columns: int):
    """No number is ever cut: what is less needed goes, and long names are folded."""
    seen = snapshot(1_000_000, tokens=123_456_789, planned=4_000_000, name="provider/" + "long-model-name-" * 4)
    frames = shown(clock, (0, snapshot(name=seen.agents[0].name)), (1000, seen)).text()
    lines = [line.rstrip() for line in frames.split("r  16:40")[1].splitlines()]
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    assert "…" not in text
    assert "tokens" in text.partition("no room for: ")[2]
    assert "1,000,000  4,000,000" in text
    assert "".join(line.split()[0] for line in lines[2:] if line).count("long-model-name-") == 4


def test_what_a_run_costs_is_shown(clock: Clock, columns: int, capsys: pytest.CaptureFixture[str]):
    """What was paid for a model stands in the table and in the lines, of a run that costs something."""
    agent = snapshot(30).agents[0].model_copy(update={"spent_usd": 1.25, "spent_tokens": 99})
    dear = Snapshot(run_id="r", agents=(agent,), budget=Budget(usd=2))
    table = shown(clock, (0, dear)).text()
    assert "cost $" in table
    assert "1.2500" in table
    assert "cost $" not in shown(clock, (0, snapshot(30))).text()
    with LiveProgress(Output(as_json=False), clock) as live:
        clock.now += 20
        live.progress(dear)
    line = capsys.readouterr().err
    assert line == "[0:20] r: 30/400 trials, spent $1.2500 of $2.0000\n"


def test_names_are_no_markup(clock: Clock, columns: int):
    """A model may be called anything."""
    assert "[red]x[/red] :smile:" in shown(clock, (0, snapshot(name="[red]x[/red] :smile:"))).text()


def rate(rates: Rates, at: float, rows: int) -> float | None:
    return rates.rated(at, snapshot(rows)).agents[0].per_minute


def test_rates_look_back_one_minute():
    """A model that has become slow is shown as slow; it is too early to tell at first."""
    rates = Rates()
    assert rate(rates, 0, 0) is None
    assert rate(rates, 1, 10) is None
    assert rate(rates, 10, 1000) == 6000
    for second in range(11, 71):
        last = rate(rates, second, 1000 + second - 10)
    assert last == 60


def test_rates_do_not_count_what_was_there_before():
    """A run that goes on starts at no speed; rows that a lost worker took with it make none negative."""
    rates = Rates()
    assert rate(rates, 0, 300) is None
    assert rate(rates, 10, 300) == 0
    assert rate(rates, 20, 200) == 0


@pytest.mark.parametrize(
    ("snapshots", "eta"),
    [
        ([(0, snapshot(0)), (1, snapshot(100))], "–"),
        ([(0, snapshot(0)), (10, snapshot(0))], "–"),
        ([(0, snapshot(0)), (10, snapshot(400))], "done"),
        ([(0, snapshot(400))], "done"),
        ([(0, snapshot(0)), (50, snapshot(1))], "5:32:30"),
    ],
)
def test_the_time_that_is_left(snapshots: list[tuple[float, Snapshot]], eta: str, clock: Clock, columns: int):
    """Shown once it can be told, in hours, minutes and seconds."""
    assert shown(clock, *snapshots).text().rstrip().splitlines()[-1].split()[-1] == eta

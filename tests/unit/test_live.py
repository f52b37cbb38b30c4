"""Progress as people see it: a table that moves on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import pytest

from support.terminal import Terminal
from trunchray.cli.live import LiveProgress, Rates
from trunchray.cli.output import Output
from trunchray.cli.screen import console
from trunchray.core.budget import Budget
from trunchray.core.receipt import Counts
from trunchray.engine.progress import AgentProgress, Snapshot


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
        for at, seen in snapshots:
            clock.now = began + at
            live.progress(seen)
    return terminal


@pytest.fixture(params=[140])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of the terminal."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("TERM", "xterm")
    return request.param


def test_a_line_every_ten_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]):
    """Without a terminal, a log gets one line per model and ten seconds, with all there is to know."""
    with LiveProgress(Output(as_json=False), clock) as live:
        for second in range(31):
            clock.now = 1000.0 + second
            live.progress(snapshot(10 * second, error=second, tokens=100 * second))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "[0:10] r: 100/400 trials; m 100/400 (passed 90, errors 10, tokens 1,000, 10.0/s, ETA 0:30)",
        "[0:20] r: 200/400 trials; m 200/400 (passed 180, errors 20, tokens 2,000, 10.0/s, ETA 0:20)",
        "[0:30] r: 300/400 trials; m 300/400 (passed 270, errors 30, tokens 3,000, 10.0/s, ETA 0:10)",
    ]


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
    assert head.split() == ["model", "done", "of", "passed", "errors", "tokens", "in", "flight", "rate", "ETA"]
    assert row.split() == ["m", "100", "400", "80", "20", "12,345", "8", "10.0/s", "0:30"]
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
    assert "tokens" not in text
    assert "1,000,000  4,000,000" in text
    assert "".join(line.split()[0] for line in lines[2:] if line).count("long-model-name-") == 4


def test_what_a_run_costs_is_shown(clock: Clock, columns: int, capsys: pytest.CaptureFixture[str]):
    """What was paid for a model stands in the table and in the lines, of a run that costs something."""
    agent = snapshot(30).agents[0].model_copy(update={"spent_usd": 1.25, "spent_tokens": 99})
    dear = Snapshot(run_id="r", agents=(agent,))
    table = shown(clock, (0, dear)).text()
    assert "cost $" in table
    assert "1.2500" in table
    assert "cost $" not in shown(clock, (0, snapshot(30))).text()
    with LiveProgress(Output(as_json=False), clock, budget=Budget(usd=2)) as live:
        clock.now += 20
        live.progress(dear)
    line = capsys.readouterr().err
    assert "tokens 0, $1.2500" in line
    assert "30/400 trials, spent $1.2500 of $2.0000; m 30/400" in line


def test_names_are_no_markup(clock: Clock, columns: int):
    """A model may be called anything."""
    assert "[red]x[/red] :smile:" in shown(clock, (0, snapshot(name="[red]x[/red] :smile:"))).text()


def test_rates_look_back_one_minute(clock: Clock):
    """A model that has become slow is shown as slow; it is too early to tell at first."""
    rates = Rates()
    assert rates.rate("m") is None
    rates.see(0, snapshot(0))
    assert rates.rate("m") is None
    rates.see(10, snapshot(1000))
    assert rates.rate("m") == 100
    for second in range(11, 71):
        rates.see(second, snapshot(1000 + second - 10))
    assert rates.rate("m") == 1


def test_rates_do_not_count_what_was_there_before():
    """A run that goes on starts at no speed; rows that a lost worker took with it make none negative."""
    rates = Rates()
    rates.see(0, snapshot(300))
    rates.see(10, snapshot(300))
    assert rates.rate("m") == 0
    rates.see(20, snapshot(200))
    assert rates.rate("m") == 0


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

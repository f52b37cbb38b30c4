"""Noticing changes of a repository, with time that passes when the test says so."""

from __future__ import annotations

from trunchray.cli.check import repeat
from trunchray.cli.output import Output
from trunchray.errors import UsageError
from trunchray.frontends.benchmark.watch import INTERVAL, Watch


class Clock:
    """Sleeps by doing the next thing; the last one is Ctrl-C."""

    def __init__(self, *actions):
        self.actions = list(actions)
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self.actions:
            raise KeyboardInterrupt
        self.actions.pop(0)()


def nothing() -> None:
    pass


def test_only_changes_of_the_authors_files_count(tmp_path):
    """A file that is added, changed or removed ends the wait; `.git` and `node_modules` do not."""
    for folder in (".git", "node_modules", "evals"):
        (tmp_path / folder).mkdir()
    eval_file = tmp_path / "evals" / "a.ts"
    clock = Clock(
        (tmp_path / ".git" / "index").touch,
        (tmp_path / "node_modules" / "x.js").touch,
        eval_file.touch,
        lambda: eval_file.write_text("more"),
        nothing,
        eval_file.unlink,
    )
    watch = Watch(tmp_path, sleep=clock.sleep)
    watch.wait()
    assert len(clock.slept) == 3
    watch.wait()
    assert len(clock.slept) == 4
    watch.wait()
    assert clock.slept == [INTERVAL] * 6


def test_a_change_during_the_work_is_not_missed(tmp_path):
    """What changes while the last state is looked at ends the next wait at once."""
    clock = Clock()
    watch = Watch(tmp_path, sleep=clock.sleep)
    (tmp_path / "a.ts").touch()
    watch.wait()
    assert clock.slept == []


def test_watching_goes_on_after_a_refusal(tmp_path, capsys):
    """A refused benchmark is told and waited out; Ctrl-C ends without an error."""
    seen: list[str] = []

    def once() -> None:
        seen.append("looked")
        if len(seen) == 1:
            raise UsageError("no benchmark here")

    clock = Clock(nothing, (tmp_path / "a.ts").touch, nothing)
    repeat(once, Watch(tmp_path, sleep=clock.sleep), Output(as_json=False))
    assert seen == ["looked"] * 2
    said = capsys.readouterr().err
    assert "no benchmark here" in said
    assert said.endswith("stopped\n")

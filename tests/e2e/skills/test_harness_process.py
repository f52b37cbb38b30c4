"""Real commands, run once: how they end, what is kept of what they print, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from support.processes import descendants
from support.scripted_harness import COMMAND, open_files, running, steps, until
from trunchray.adapters.harness_process import LONGEST_ARGUMENT, Caps, Capture, Command, Ending, run_command
from trunchray.core.masking import Mask

PATH = {"PATH": os.environ["PATH"]}


class Run:
    """Runs commands in a folder, and reads what they left there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard = bytearray()

    async def __call__(
        self, *argv: str, limit: float = 60, grace: float = 5, clock: Callable[[], float] = monotonic, **capture: Any
    ) -> Ending:
        """`capture` is more of what becomes of the output."""
        command = Command(argv, cwd=self.folder, env=PATH, limit=limit, grace=grace)
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            kept = Capture(out, err, **{"watch": self.heard.extend, **capture})
            return await run_command(command, kept, clock=clock)

    async def script(self, *does: dict[str, Any], limit: float = 60, **more: Any) -> Ending:
        return await self(*(token.replace("{prompt}", steps(*does)) for token in COMMAND), limit=limit, **more)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


GRANDCHILD = {"fork": [{"pid": "grandchild"}, {"sleep": 2}, {"write": "late.txt"}, {"sleep": 600}]}
SEEN = {"await": "grandchild"}


async def test_a_command_that_ends_well(run: Run):
    """Its code, and all it printed, on both streams and to whoever watches."""
    ending = await run("sh", "-c", "echo out; echo err >&2")
    assert (ending.status, ending.code, ending.reason, ending.truncated) == ("ended", 0, None, ())
    assert (run.text("stdout"), run.text("stderr"), bytes(run.heard)) == ("out\n", "err\n", b"out\n")


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -9), ("exit 255", 255)])
async def test_how_a_command_ended(run: Run, script: str, code: int):
    """Its exit code, or minus the signal that ended it."""
    ending = await run("sh", "-c", script)
    assert (ending.status, ending.code) == ("ended", code)


async def test_standard_input_is_closed(run: Run):
    """A tool that reads it finds its end at once, and waits for nobody."""
    assert (await run("sh", "-c", "cat; echo read")).status == "ended"
    assert run.text("stdout") == "read\n"


async def test_no_shell_sees_the_arguments(run: Run):
    """What a prompt holds is an argument, whatever a shell would make of it."""
    await run("printf", "%s|", "$(touch hacked) `id` ; rm -rf * 'x\" \n*")
    assert run.text("stdout") == "$(touch hacked) `id` ; rm -rf * 'x\" \n*|"


async def test_the_variables_are_those_given(run: Run):
    """Nothing of ours is added; a shell sets PWD and the like by itself, so it is not asked."""
    await run(sys.executable, "-S", "-c", "import os, json; print(json.dumps(dict(os.environ)))")
    assert json.loads(run.text("stdout")).keys() - {"LC_CTYPE"} == PATH.keys()  # Python's own, where there is no locale


async def test_a_command_that_is_not_there(run: Run):
    """It is named, with what to do."""
    ending = await run("no-such-tool", "x")
    assert (ending.status, ending.code) == ("missing", -1)
    assert ending.reason == "there is no command 'no-such-tool' on this machine; install it, or give its path"


async def test_a_relative_path_of_a_command(run: Run):
    """It would be looked for in the workspace, where nobody has put it."""
    assert "'./tool.py' on this machine; give its whole path" in ((await run("./tool.py", "x")).reason or "")


async def test_permission_error_on_the_command_is_a_missing_harness(run: Run):
    """The original called it an exception; there is nothing that could be run, as where there is no file."""
    (run.folder / "tool").write_text("#!/bin/sh\n")
    ending = await run(str(run.folder / "tool"), "x")
    assert ending.status == "missing"
    assert "may not be executed here: Permission denied" in (ending.reason or "")


async def test_an_argument_of_131072_bytes_is_refused_with_a_reason(run: Run):
    """Linux takes one byte less; the original's tools broke down with E2BIG."""
    assert (await run("true", "x" * LONGEST_ARGUMENT)).status == "ended"
    ending = await run("true", "x" * (LONGEST_ARGUMENT + 1))
    assert (ending.status, ending.code) == ("refused", -1)
    assert ending.reason == (
        "the longest argument has 131,072 bytes, and Linux takes 131,071 at most; "
        "shorten the prompt, or put what is long into a file of the case"
    )


async def test_arguments_that_are_too_long_together_are_refused_with_that_reason(run: Run):
    """None of them is too long by itself, so nobody is told to shorten one to what it has already."""
    ending = await run("true", *["x" * LONGEST_ARGUMENT] * 100)
    assert ending.status == "refused"
    assert (ending.reason or "").startswith("the arguments and variables together are longer than this system takes; ")


@pytest.mark.parametrize("prompt", ["a\0b", "half a character: \ud800"])
async def test_an_argument_that_no_command_can_have_is_refused_with_a_reason(run: Run, prompt: str):
    """NUL, and what is no text, are no reason to break down."""
    ending = await run("true", prompt)
    assert ending.status == "refused"
    assert "could not be started" in (ending.reason or "")


async def test_a_file_that_is_no_program_is_refused_with_a_reason(run: Run):
    """It may be executed, and cannot be."""
    (run.folder / "tool").write_text("no program")
    (run.folder / "tool").chmod(0o755)
    ending = await run(str(run.folder / "tool"))
    assert ending.status == "refused"


async def test_a_command_that_takes_too_long(run: Run):
    """What it printed is kept, and its error stream says why it ended there."""
    ending = await run.script({"say": "begun"}, {"stderr": "working"}, {"sleep": 600}, limit=2)
    assert (ending.status, ending.code, ending.reason) == ("timeout", -1, "still running after 2 s")
    assert "begun" in run.text("stdout")
    assert run.text("stderr") == "working\nTIMEOUT after 2s"


async def test_a_command_is_asked_to_end_before_it_is_killed(run: Run):
    """A tool that puts its things in order when it is told to has the time for it."""
    script = "trap 'echo in order; exit 0' TERM; while :; do sleep 0.05; done"
    ending = await run("sh", "-c", script, limit=1, grace=60)
    assert (ending.status, run.text("stdout")) == ("timeout", "in order\n")


async def test_a_command_that_ignores_sigterm_is_killed(run: Run):
    """Whatever it does about being asked."""
    ending = await run.script({"ignore": "SIGTERM"}, {"pid": "pid"}, {"sleep": 600}, limit=2, grace=0.1)
    assert ending.status == "timeout"
    assert not running(run.text("pid"))


@pytest.mark.parametrize("detached", [False, True])
async def test_a_grandchild_that_writes_two_seconds_later_does_not(run: Run, detached: bool):
    """After a timeout the original killed its direct child alone; now nothing is left, in its session or out of it."""
    await run.script(GRANDCHILD | {"detached": detached}, SEEN, {"pid": "pid"}, {"sleep": 600}, limit=2, grace=0.1)
    assert not running(run.text("grandchild"))
    assert not running(run.text("pid"))
    assert not (run.folder / "late.txt").exists()


@pytest.mark.parametrize("detached", [False, True])
async def test_a_grandchild_left_after_a_normal_end_is_killed(run: Run, detached: bool):
    """A server that a tool forgot does not run for ever, nor does its output keep us waiting."""
    ending = await run.script(GRANDCHILD | {"detached": detached}, SEEN)
    assert (ending.status, ending.code) == ("ended", 0)
    assert not running(run.text("grandchild"))


async def test_a_cancelled_run_leaves_no_process(run: Run):
    """Neither the command, nor what it started, nor what watches over them."""
    before = descendants(os.getpid())
    task = asyncio.create_task(run.script(GRANDCHILD | {"detached": True}, SEEN, {"pid": "pid"}, {"sleep": 600}))
    await until((run.folder / "pid").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running(run.text("grandchild"))
    assert not running(run.text("pid"))
    assert descendants(os.getpid()) <= before


async def test_a_command_that_kills_what_watches_over_it(run: Run):
    """It ends as well, and nobody knows how."""
    ending = await run("sh", "-c", "echo $$ > pid; kill -9 $PPID; sleep 600")
    assert (ending.status, ending.code) == ("lost", -1)
    await until(lambda: not running(run.text("pid")))


ORPHAN = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        open("orphan", "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists("orphan") or not os.path.getsize("orphan"):
    time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only a process group is known")
@pytest.mark.parametrize(
    ("does", "status"),
    [("os.kill(os.getppid(), 9); time.sleep(600)", "lost"), ("os.kill(os.getppid(), signal.SIGSTOP)", "ended")],
)
async def test_what_a_command_has_started_ends_with_it_also_when_it_attacks_what_watches_over_it(
    run: Run, does: str, status: str
):
    """It is killed, or stopped: all that the command has left is killed nevertheless, before the run is over."""
    ending = await run(sys.executable, "-S", "-c", f"{ORPHAN}\n{does}")
    assert ending.status == status
    assert not running(run.text("orphan"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one process that watches")
async def test_a_command_that_stops_all_that_watches_over_it_does_not_stop_its_end(run: Run):
    """At the end of its time they go on, and end it."""
    parents = "above = int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
    stop = "os.kill(above, signal.SIGSTOP); os.kill(os.getppid(), signal.SIGSTOP); time.sleep(600)"
    ending = await run(sys.executable, "-S", "-c", f"{ORPHAN}\n{parents}\n{stop}", limit=2, grace=0.1)
    assert ending.status == "timeout"
    assert not running(run.text("orphan"))


async def test_a_killed_worker_takes_its_commands_along(run: Run):
    """When our own process is killed, nobody could end them later."""
    program = f"""
import asyncio, os
from pathlib import Path
from time import monotonic
from trunchray.adapters.harness_process import Capture, Command, run_command
folder = Path({str(run.folder)!r})
prompt = {steps(GRANDCHILD, SEEN, {"pid": "pid"}, {"sleep": 600})!r}
argv = [token.replace("{{prompt}}", prompt) for token in {COMMAND!r}]
command = Command(argv, cwd=folder, env={PATH!r}, limit=600)
asyncio.run(run_command(command, Capture((folder / "o").open("wb"), (folder / "e").open("wb"))))
"""
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await until((run.folder / "pid").exists)
    worker.kill()
    await worker.wait()
    await until(lambda: not running(run.text("pid")) and not running(run.text("grandchild")))


async def test_fifty_megabytes_of_output(run: Run):
    """All of it is heard, and of it is kept what was allowed: the beginning, the end, and how much is missing."""
    line = "x" * 1023 + "\n"
    kept = Caps(stdout=1 << 20, stderr=1 << 16, tail=1 << 12)
    ending = await run.script({"print": line, "times": 50 << 10}, {"print": "the end\n"}, caps=kept)
    assert ending.truncated == ("stdout",)
    assert len(run.heard) > 50 << 20
    text = run.text("stdout")
    assert len(text) < (1 << 20) + 100
    assert "bytes are left out here" in text
    assert '"type": "result"' in text.splitlines()[-1]


async def test_errors_without_end(run: Run):
    """The error stream is bounded as well, and still says that the time was up."""
    ending = await run(
        "sh", "-c", "yes error >&2", limit=1, caps=Caps(stderr=1 << 16, tail=1 << 10), warnings=b"first\n"
    )
    assert (ending.status, ending.truncated) == ("timeout", ("stderr",))
    text = run.text("stderr")
    assert text.startswith("first\n")
    assert text.endswith("\nTIMEOUT after 1s")
    assert len(text) < (1 << 16) + 200


async def test_what_a_command_said_is_its_own(run: Run):
    """Our own lines, before and after, are not given as what the tool said."""
    assert (await run("sh", "-c", "exit 1", warnings=b"trunchray: a file is missing\n")).said == ""
    script = "echo what; echo why >&2; sleep 600"
    ending = await run("sh", "-c", script, limit=1, grace=0.1, warnings=b"trunchray: a file is missing\n")
    assert ending.said == "why\n"
    assert run.text("stderr") == "trunchray: a file is missing\nwhy\n\nTIMEOUT after 1s"


async def test_what_is_masked_is_nowhere(run: Run):
    """Neither in the files, nor in what whoever watches is given, nor in what the command said last."""
    ending = await run(
        "sh", "-c", "printf 'k9Xv72'; sleep 0.1; echo mQpL0aZr; echo k9Xv72mQpL0aZr >&2", mask=Mask(["k9Xv72mQpL0aZr"])
    )
    assert (run.text("stdout"), run.text("stderr")) == ("[masked]\n", "[masked]\n")
    assert (bytes(run.heard), ending.said) == (b"[masked]\n", "[masked]\n")


async def test_whatever_watches_may_break_down(run: Run):
    """Then the run is over in order, and it is told."""

    def broken(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        await run("sh", "-c", "yes | head -c 1000000", watch=broken)


async def test_the_time_is_that_of_the_clock_given(run: Run):
    """Seconds from the start of the command to its end."""
    ticks = iter([10.0, 12.5])
    assert (await run("true", clock=lambda: next(ticks))).seconds == 2.5


async def test_no_file_stays_open(run: Run):
    """However a run ends."""
    await run("true")
    before = open_files()
    await run("true")
    await run("no-such-tool")
    await run.script({"sleep": 600}, limit=0.2, grace=0.1)
    assert open_files() == before

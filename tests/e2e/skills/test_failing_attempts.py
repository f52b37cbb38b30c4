"""Attempts that come to no good end: whose fault it was, and what is run again."""

from __future__ import annotations

import errno
import resource

import pytest

from support.attempt_bench import Bench
from support.scripted_harness import left_in, steps
from trunchray.adapters.clean_room import StagingError, clean_room
from trunchray.adapters.host import Host
from trunchray.core.case import CaseInput
from trunchray.core.harness import Harness
from trunchray.core.staging import Fixture, StagedCase
from trunchray.core.trial import Trace
from trunchray.errors import HarnessError, UsageError


@pytest.mark.parametrize("code", [1, 7])
async def test_another_exit_code_is_an_error(bench: Bench, code: int):
    """The code is kept."""
    error = await bench.fails(steps({"exit": code}))
    assert (error.type, bench.timing()["return_code"]) == ("error", code)


async def test_no_such_command(bench: Bench):
    """The status has a name of its own."""
    error = await bench.fails("x", harness=Harness(command=("no-such-tool", "{prompt}")))
    assert (error.type, bench.timing()["status"]) == ("harness-missing", "harness-missing")
    assert (bench.timing()["return_code"], bench.timing()["elapsed_s"]) == (-1, 0.0)
    assert "no-such-tool" in bench.timing()["reason"]


async def test_permission_error_on_the_command_is_harness_missing(bench: Bench):
    """The original called it an exception."""
    (bench.folder / "tool").write_text("#!/bin/sh\n")
    error = await bench.fails("x", harness=Harness(command=(str(bench.folder / "tool"), "{prompt}")))
    assert error.type == "harness-missing"


@pytest.mark.parametrize("prompt", ["x" * 131_072, "a\0b"])
async def test_a_prompt_that_no_argument_can_hold_is_an_error_with_a_reason(bench: Bench, prompt: str):
    """131,072 bytes and NUL were exceptions of the original."""
    error = await bench.fails(prompt)
    assert error.type == "error"
    assert bench.timing()["reason"]


async def test_a_timeout(bench: Bench):
    """What was printed is kept, and what was written; the case's own limit goes before that of its config."""
    bench.staged = bench.staged.model_copy(update={"timeout": 1.5})
    error = await bench.fails(steps({"write": "x.md"}, {"say": "begun"}, {"sleep": 600}), timeout=1000)
    assert (error.type, bench.timing()["return_code"]) == ("timeout", -1)
    assert isinstance(error.trace, Trace)
    assert error.trace.output == "begun"
    assert bench.text("stderr.txt").endswith("\nTIMEOUT after 1.5s")
    assert "cwd/x.md" in bench.files()


async def test_without_a_harness_all_is_staged_and_nothing_runs(bench: Bench):
    """The status says so, and there is no code."""
    bench.staged = bench.staged.model_copy(update={"fixtures": (bench.fixture("in.md", b"x"),)})
    error = await bench.fails("hello", harness=None, skill=bench.skill())
    assert (error.type, bench.timing()["status"], bench.timing()["return_code"]) == ("skipped", "skipped", None)
    assert {"cwd/in.md", "cwd/.agents/skills/briefs/SKILL.md", "prompt.txt", "case.json"} <= set(bench.files())


async def test_a_fixture_that_escapes_the_workspace_is_an_error_with_a_reason(bench: Bench):
    """Whoever made the staging: nothing is written outside of the room."""
    escaping = Fixture.model_construct(path="../../secret.txt", sha256=bench.keep(b"x"))
    bench.staged = StagedCase.model_construct(
        folder="create-1", case={"id": "create-1"}, fixtures=(escaping,), timeout=None
    )
    tool = bench.tool(bench.agent())
    object.__setattr__(tool, "_staging", tool._staging.model_copy(update={"cases": {"c": bench.staged}}))
    with pytest.raises(HarnessError) as caught:
        await tool.run(CaseInput(prompt=steps()), case_id="c", attempt=1)
    assert caught.value.type == "error"
    assert "escapes the workspace" in bench.timing()["reason"]
    assert left_in(bench.rooms) == []


class Failing(dict[str, bytes]):
    """Inputs that cannot be had."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def __getitem__(self, _: str) -> bytes:
        raise self._error


@pytest.mark.parametrize(
    "broken",
    [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EMFILE, "Too many"), UsageError("set TMPDIR")],
)
async def test_what_the_machine_fails_at_while_staging_is_run_again(bench: Bench, broken: Exception):
    """It says nothing of the case, so nothing is recorded, and the next try is the attempt."""
    bench.staged = bench.staged.model_copy(update={"fixtures": (bench.fixture("in.md", b"x"),)})
    whole, bench.inputs = bench.inputs, Failing(broken)
    error = await bench.fails(steps({"say": "x"}))
    assert (error.type, error.retryable, str(broken) in str(error)) == ("exception", True, True)
    assert ("timing.json" in bench.files(), left_in(bench.rooms)) == (False, [])
    bench.inputs = whole
    assert (await bench.does({"say": "x"})).output == "x"


async def test_a_room_tells_the_machine_from_what_is_staged(bench: Bench):
    """Descriptors that ran out are no fault of a file or a skill; a path through a file is."""
    skill = bench.inputs[bench.skill().tree]
    async with clean_room(Host(rooms=bench.rooms), None) as room:
        room.put("a", b"")
        with pytest.raises(StagingError, match="'a/b' escapes the workspace or cannot be put there: "):
            room.put("a/b", b"")
        with pytest.raises(StagingError, match="'briefs' cannot be staged: "):
            room.add_skill("a", "briefs", skill)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                room.put("c", b"")
            with pytest.raises(OSError, match="Too many open files"):
                room.add_skill("d", "briefs", skill)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_what_breaks_down_on_our_side_is_an_exception(bench: Bench):
    """It is recorded, with what it was."""
    bench.more["variables"] = {"PATH": 3}
    error = await bench.fails(steps({"say": "x"}))
    assert (error.type, bench.timing()["status"]) == ("exception", "exception")
    assert bench.timing()["reason"].startswith("TypeError")


async def test_a_store_that_fails_records_nothing(bench: Bench):
    """Nothing was lost but this try: the attempt can be made again."""
    (bench.folder / "out").write_text("a file where the run folder should be")
    error = await bench.fails(steps({"say": "x"}))
    assert (error.type, error.retryable) == ("exception", True)
    assert left_in(bench.rooms) == []

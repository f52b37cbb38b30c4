"""Attempts of skill evals: real processes in clean rooms, kept in folders of this machine and of a real S3 server."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.attempts import elsewhere
from support.s3 import Bucket
from support.scripted_harness import COMMAND, left_in, running, scripted_harness, steps, until
from trunchray.adapters.clean_room import StagingError, clean_room
from trunchray.adapters.harness_process import Caps
from trunchray.adapters.host import Host
from trunchray.adapters.store import Store
from trunchray.adapters.survey import TreeCaps
from trunchray.adapters.tree import pack
from trunchray.agents.harness.agent import HarnessTool, Surroundings
from trunchray.core.agent import HarnessAgent, SkillTree, TriggerSkill
from trunchray.core.case import CaseInput
from trunchray.core.digest import sha256
from trunchray.core.harness import Harness
from trunchray.core.staging import Fixture, StagedCase, Staging
from trunchray.core.trial import Trace
from trunchray.errors import HarnessError, UsageError

TEMPORARY = Path(tempfile.gettempdir()).resolve()
DIGITS, HIDDEN = "0badcafe", "5eed0bad"
TOKEN = f"TRIGGER-LOADED-{HIDDEN}"


class Bench:
    """Puts cases to a harness, and reads what is kept of that."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.root = folder, root
        self.inputs: dict[str, bytes] = {}
        self.rooms, self.home = folder / "rooms", folder / "home"
        for each in (self.rooms, self.home):
            each.mkdir()
        self.variables = {"PATH": os.environ["PATH"], "REGION": "of the host", "LANG": "C.UTF-8"}
        self.staged = StagedCase(folder="create-1", case={"id": "create-1", "input": "x", "tags": ["kept"]})
        self.more: dict[str, Any] = {}

    def keep(self, content: bytes) -> str:
        self.inputs[sha256(content)] = content
        return sha256(content)

    def fixture(self, path: str, content: bytes) -> Fixture:
        return Fixture(path=path, sha256=self.keep(content))

    def skill(self, *, script: dict[str, Any] | None = None) -> SkillTree:
        made = self.folder / "briefs"
        (made / "evals").mkdir(parents=True)
        (made / "SKILL.md").write_text("---\nname: briefs\ndescription: Writes product briefs.\n---\nWrite it.\n")
        (made / "scripts").mkdir()
        (made / "scripts" / "count.sh").write_text("#!/bin/sh\n")
        (made / "scripts" / "count.sh").chmod(0o755)
        (made / "__pycache__").mkdir()
        (made / "__pycache__" / "x.pyc").touch()
        (made / "evals" / "scripted.json").write_text(json.dumps(script or {"replies": []}))
        return SkillTree(name="briefs", tree=self.keep(pack(made)))

    def agent(self, **given: Any) -> HarnessAgent:
        return HarnessAgent(**({"name": "skill", "harness": scripted_harness(), "staging": "a" * 64} | given))

    def tool(self, agent: HarnessAgent, layout: str = "cases", runs: int = 1) -> HarnessTool:
        staging = Staging.model_validate(
            {"root": self.root, "layout": layout, "runs": runs, "cases": {"c": self.staged}}
        )
        here: dict[str, Any] = {
            "variables": self.variables,
            "home": self.home,
            "rooms": self.rooms,
            "digits": iter((DIGITS, HIDDEN) * 8).__next__,
            "now": lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
            "grace": 0.1,
        }
        return HarnessTool(agent, staging, self.inputs.__getitem__, Surroundings(**(here | self.more)))

    async def run(self, prompt: str, *, runs: int = 1, attempt: int = 1, layout: str = "cases", **given: Any) -> Trace:
        tool = self.tool(self.agent(**given), layout, runs)
        return await tool.run(CaseInput(prompt=prompt), case_id="c", attempt=attempt)

    async def does(self, *does: dict[str, Any], **given: Any) -> Trace:
        return await self.run(steps(*does), **given)

    async def fails(self, prompt: str, **given: Any) -> HarnessError:
        with pytest.raises(HarnessError) as caught:
            await self.run(prompt, **given)
        return caught.value

    def files(self, attempt: str = "skill/create-1") -> list[str]:
        return Store(f"{self.root}/{attempt}").find()

    def text(self, path: str, attempt: str = "skill/create-1") -> str:
        return Store(f"{self.root}/{attempt}").read(path).decode()

    def timing(self, attempt: str = "skill/create-1") -> dict[str, Any]:
        return json.loads(self.text("timing.json", attempt))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, str(tmp_path / "out"))


@pytest.fixture(params=["local", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A bench whose attempts are kept on this machine, or on an S3 server."""
    if request.param == "local":
        return Bench(tmp_path, str(tmp_path / "out"))
    bucket: Bucket = request.getfixturevalue("s3")
    return Bench(tmp_path, f"{bucket.uri}/out")


async def test_what_is_kept_of_an_attempt(anywhere: Bench):
    """Case, prompt, transcript, errors, workspace and timing, under the documented names."""
    anywhere.staged = anywhere.staged.model_copy(update={"fixtures": (anywhere.fixture("data/in.md", b"fixture"),)})
    prompt = steps({"read": "data/in.md"}, {"write": "out/brief.md", "text": "Hällo"}, {"say": "Done."})
    await anywhere.run(prompt)
    assert anywhere.files() == [
        "case.json",
        "cwd/data/in.md",
        "cwd/out/brief.md",
        "prompt.txt",
        "stderr.txt",
        "timing.json",
        "transcript.jsonl",
    ]
    assert json.loads(anywhere.text("case.json")) == anywhere.staged.case
    assert (anywhere.text("prompt.txt"), anywhere.text("cwd/out/brief.md")) == (prompt, "Hällo")
    assert '"fixture"' in anywhere.text("transcript.jsonl")
    assert left_in(anywhere.rooms) == []


async def test_the_trace_of_an_attempt(anywhere: Bench):
    """The final message, tokens, tool calls, and where all of it is kept; asking again says the same."""
    does = [{"call": "Bash", "input": {"command": "ls"}, "output": "x"}, {"say": "All done."}]
    prompt = steps(*does, {"usage": {"input_tokens": 70, "output_tokens": 7, "cache_read_input_tokens": 5}})
    trace = await anywhere.run(prompt)
    assert (trace.output, trace.finish_reason, trace.usage.input_tokens) == ("All done.", "stop", 70)
    assert [(call.tool_name, call.output) for call in trace.tool_calls] == [("Bash", "x")]
    assert trace.steps[0].kind == "attempt"
    assert trace.steps[0].name == "skill"
    folder = Store(f"{anywhere.root}/skill/create-1").uri
    assert trace.steps[0].output == {"folder": folder, "path": "skill/create-1", "status": "ok", "loaded": None}
    assert trace.model_seconds == anywhere.timing()["elapsed_s"]
    assert await anywhere.run(prompt) == trace


async def test_timing(bench: Bench):
    """All that the documented file has."""
    bench.more["clock"] = iter([1.0, 3.34567]).__next__
    usage = {"input_tokens": 70, "output_tokens": 7, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    await bench.does({"call": "Bash"}, {"call": "Bash"}, {"say": "ok"}, {"usage": usage})
    assert bench.timing() == {
        "case_id": "create-1",
        "config": "skill",
        "status": "ok",
        "elapsed_s": 2.346,
        "return_code": 0,
        "input_tokens": 70,
        "output_tokens": 7,
        "total_tokens": 77,
        "cache_read_tokens": 5,
        "cache_write_tokens": 2,
        "tokens_reported": True,
        "total_steps": 3,
        "total_tool_calls": 2,
        "tool_calls": {"Bash": 2},
        "captured_at": "2026-03-04T05:06:07Z",
        "truncated": [],
        "left_out": [],
    }


async def test_an_attempt_folder_that_is_complete_is_never_touched(anywhere: Bench):
    """It is not run again, whatever is asked now; not one of its objects changes, nor does one come."""
    await anywhere.does({"write": "brief.md", "text": "first"}, {"say": "first"})
    store = Store(f"{anywhere.root}/skill/create-1")
    before = store.read_many(store.find())
    trace = await anywhere.does({"write": "other.md"}, {"exit": 3})
    assert trace.output == "first"
    assert store.read_many(store.find()) == before


async def test_a_complete_attempt_that_failed_fails_again(bench: Bench):
    """Its error is that of the first time, and comes with its trace."""
    prompt = steps({"say": "so far"}, {"stderr": "boom\n"}, {"exit": 3})
    first, again = await bench.fails(prompt), await bench.fails(steps({"say": "ok"}))
    assert str(first) == str(again) == "skill/create-1: exit code 3: boom"
    assert (again.type, again.retryable, again.boundary) == ("error", False, "harness")
    assert isinstance(again.trace, Trace)
    assert (again.trace.output, again.trace.finish_reason) == ("so far", "error")
    assert again.trace == first.trace


async def test_an_attempt_that_never_came_to_its_end_is_run_again(anywhere: Bench):
    """What it left is removed, so that nothing of it is taken for the work of the next one."""
    store = Store(f"{anywhere.root}/skill/create-1")
    for path in ("prompt.txt", ".tries/dead/cwd/half-done.md", ".tries/dead/cwd/deep/er.md"):
        store.write(path, b"old")
    await anywhere.does({"write": "brief.md"})
    expected = ["case.json", "cwd/brief.md", "prompt.txt", "stderr.txt", "timing.json", "transcript.jsonl"]
    assert anywhere.files() == expected
    assert "brief.md" in anywhere.text("prompt.txt")


async def test_what_no_attempt_has_left_is_not_taken_for_one(anywhere: Bench):
    """A workspace without a timing is somebody's: nothing of it is removed, and nothing is mixed with it."""
    Store(f"{anywhere.root}/skill/create-1").write("cwd/mine.md", b"mine")
    error = await anywhere.fails(steps({"write": "brief.md"}))
    assert "skill/create-1/cwd is there without timing.json; move it elsewhere" in str(error)
    assert anywhere.files() == ["cwd/mine.md"]


async def test_timing_is_written_last(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """When it is there, everything else is."""
    seen: list[str] = []
    for name in ("write", "put", "create"):
        real: Callable[..., Any] = getattr(Store, name)

        def noted(self: Store, path: str, *rest: Any, real: Callable[..., Any] = real) -> Any:
            seen.append(path)
            return real(self, path, *rest)

        monkeypatch.setattr(Store, name, noted)
    await bench.does({"write": "x.md"})
    assert seen[:2] == ["case.json", "prompt.txt"]
    assert seen[-1] == "timing.json"


async def test_somebody_elses_timing_counts_when_it_was_first(bench: Bench):
    """Two workers that run the same attempt, as one was taken for dead, agree on one; the other changes nothing."""
    other = steps({"pid": str(bench.folder / "begun")}, {"await": str(bench.folder / "go")}, {"say": "slow"})
    slow = asyncio.create_task(bench.run(other))
    await until((bench.folder / "begun").exists)
    store = Store(f"{bench.root}/skill/create-1")
    timing = {"case_id": "create-1", "config": "skill", "status": "ok", "captured_at": "then", "elapsed_s": 7.0}
    store.write("transcript.jsonl", b"quick")
    store.write("timing.json", json.dumps(timing).encode())
    before = store.read_many(store.find())
    (bench.folder / "go").touch()
    trace = await slow
    assert (trace.output, trace.model_seconds) == ("quick", 7.0)
    assert store.read_many(store.find()) == before


async def test_who_is_late_gets_all_that_the_other_one_has_kept(anywhere: Bench):
    """Also when both were keeping what came of it at the same time: no timing comes with the words of another."""
    (anywhere.folder / "quick").mkdir()
    quick = Bench(anywhere.folder / "quick", anywhere.root)
    prompts = [steps({"write": "mine.md", "text": who}, {"say": who}) for who in ("quick", "slow")]

    def now() -> datetime:
        if not anywhere.files().count("timing.json"):
            elsewhere(lambda: asyncio.run(quick.run(prompts[0])))
        return datetime(2027, 1, 1, tzinfo=UTC)

    anywhere.more["now"] = now
    trace = await anywhere.run(prompts[1])
    assert trace.output == "quick"
    assert anywhere.text("cwd/mine.md") == "quick"
    assert anywhere.timing()["captured_at"].startswith("2026")
    assert not [path for path in anywhere.files() if path.startswith(".")]


async def test_runs_have_folders_of_their_own(bench: Bench):
    """Where there are several of a case."""
    await bench.does({"say": "x"}, runs=2, attempt=2, name="bare")
    assert "timing.json" in bench.files("bare/create-1/run-2")


async def test_a_query_has_no_case_file(bench: Bench):
    """Its folder is that of queries."""
    bench.staged = StagedCase(folder="q003")
    await bench.does({"say": "x"}, layout="queries", runs=3, attempt=1)
    assert "case.json" not in bench.files("queries/q003-r0")
    assert bench.timing("queries/q003-r0")["case_id"] == "q003"


async def test_the_skill_is_copied_into_the_workspace(bench: Bench):
    """All of it but caches and git, executable where it was; the workspace is a git repository, which is not kept."""
    script = {"replies": [{"when": "brief", "do": [{"write": "seen", "text": "x"}, {"say": "I wrote it."}]}]}
    bench.more["variables"] = bench.variables
    skill = bench.skill(script=script)
    trace = await bench.run("write a product brief", skill=skill)
    below = "cwd/.agents/skills/briefs"
    assert [path for path in bench.files() if path.startswith(below)] == [
        f"{below}/SKILL.md",
        f"{below}/evals/scripted.json",
        f"{below}/scripts/count.sh",
    ]
    assert os.access(Path(bench.root, "skill/create-1", below, "scripts/count.sh"), os.X_OK)
    assert trace.output == "I wrote it."
    assert not any(".git" in path for path in bench.files())


async def test_bare_has_no_skill(bench: Bench):
    """It is the same tool without one."""
    trace = await bench.run("write a product brief", name="bare")
    assert trace.output == "There is no script for this."
    assert not [path for path in bench.files("bare/create-1") if path.startswith("cwd/")]


async def test_the_workspace_is_a_git_repository(bench: Bench):
    """There tools see the end of the project, and look no further up."""
    found = Harness(command=("sh", "-c", "test -d .git && pwd # {prompt}"))
    assert Path((await bench.run("x", harness=found)).output).name == "cwd"


async def test_without_git_a_run_goes_on(bench: Bench):
    """Where git is not installed, or refuses, the workspace is just no repository."""
    bench.variables["PATH"] = str(bench.home)
    found = Harness(command=("/bin/sh", "-c", "test -d .git || echo no repository # {prompt}"))
    assert (await bench.run("x", harness=found)).output == "no repository"


async def test_repositories_in_the_workspace_are_kept_without_their_git(bench: Bench):
    """At any depth: what git has there is not what the skill has made."""
    await bench.does({"write": "sub/.git/config"}, {"write": "sub/x.md"})
    assert [path for path in bench.files() if path.startswith("cwd/")] == ["cwd/sub/x.md"]


async def test_rooms_are_not_in_the_project(bench: Bench):
    """No tool finds the instructions of a project that lies above its workspace."""
    bench.more["rooms"] = None
    where = Path((await bench.run("x", harness=Harness(command=("sh", "-c", "pwd # {prompt}")))).output)
    assert where.is_relative_to(TEMPORARY)
    assert not where.is_relative_to(Path(__file__).parents[3])
    assert not where.parent.exists()


async def test_the_environment_is_exactly_as_said(bench: Bench):
    """PATH, a fresh HOME, and what the harness says: no LANG, no proxy, no secret of the host that it does not name."""
    env = {"A": "1", "B": "~", "C": "~/.tool", "REGION": "", "ABSENT": ""}
    program = "import os,json,sys; print(json.dumps({**os.environ, 'home': os.listdir(os.environ['HOME'])}))"
    harness = Harness(command=(sys.executable, "-S", "-X", "utf8=1", "-c", program, "{prompt}"), env=env)
    found = json.loads((await bench.run("x", harness=harness)).output)
    home = found.pop("HOME")
    found.pop("LC_CTYPE", None)  # Python's own, where there is no locale
    assert Path(home).name == ".home"
    assert Path(home).is_relative_to(bench.rooms)
    assert found == {
        "PATH": bench.variables["PATH"],
        "A": "1",
        "B": home,
        "C": f"{home}/.tool",
        "REGION": "of the host",
        "home": [".tool"],
    }


async def test_home_files_are_copied(bench: Bench):
    """Files and, except on macOS, folders: a run cannot write to the host's home through them."""
    (bench.home / ".tool" / "deep").mkdir(parents=True)
    (bench.home / ".tool" / "deep" / "auth.json").write_text("login")
    (bench.home / ".token").write_text("t")
    (bench.home / ".token").chmod(0o600)
    os.mkfifo(bench.home / ".tool" / "agent.sock")
    script = "cat $HOME/.tool/deep/auth.json $HOME/.token; echo x > $HOME/.tool/deep/auth.json; stat -c %a $HOME/.token"
    harness = Harness(command=("sh", "-c", f"{script} # {{prompt}}"), home_files=("~/.tool", ".token"))
    trace = await bench.run("x", harness=harness)
    assert trace.output == "logint600"
    assert (bench.home / ".tool" / "deep" / "auth.json").read_text() == "login"


async def test_home_folders_are_links_on_macos(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Its keychains work in their place only."""
    (bench.home / "Library" / "Keychains").mkdir(parents=True)
    (bench.home / ".token").write_text("t")
    monkeypatch.setattr(sys, "platform", "darwin")
    script = "readlink $HOME/Library/Keychains; test -L $HOME/.token || echo copied"
    harness = Harness(command=("sh", "-c", f"{script} # {{prompt}}"), home_files=("Library/Keychains", ".token"))
    assert (await bench.run("x", harness=harness)).output == f"{bench.home}/Library/Keychains\ncopied"
    assert (bench.home / "Library" / "Keychains").is_dir()


async def test_missing_home_files_are_a_warning_only(bench: Bench):
    """The run goes on; its error stream says what was not there."""
    await bench.does({"stderr": "x"}, harness=scripted_harness(home_files=("~/.nothing",)))
    warning = "trunchray: home_files: '.nothing' is no file or folder on this machine that may be read\n"
    assert bench.text("stderr.txt") == f"{warning}x"


async def test_nothing_of_the_home_is_kept(bench: Bench):
    """Logins stay where they are."""
    (bench.home / ".token").write_text("secret login")
    await bench.does({"say": "x"}, harness=scripted_harness(home_files=("~/.token",)))
    assert all("secret login" not in bench.text(path) for path in bench.files())


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


async def test_fifo_socket_and_device_in_the_workspace(anywhere: Bench):
    """The original broke down over them; they are left out, by name, and everything else is kept."""
    await anywhere.does({"fifo": "pipe"}, {"socket": "sock"}, {"write": "a.md"}, {"write": "z.md"})
    assert anywhere.timing()["left_out"] == ["pipe: a named pipe", "sock: a socket"]
    assert [path for path in anywhere.files() if path.startswith("cwd/")] == ["cwd/a.md", "cwd/z.md"]


@pytest.mark.skipif(not hasattr(os, "mknod") or os.getuid() != 0, reason="only root makes devices")
async def test_a_device_in_the_workspace(bench: Bench):
    """As a pipe or a socket."""
    program = "import os, stat; os.mknod('null', stat.S_IFCHR | 0o666, os.makedev(1, 3))"
    try:
        await bench.run("x", harness=Harness(command=(sys.executable, "-S", "-c", program, "{prompt}")))
    except HarnessError:
        pytest.skip("this machine lets nobody make devices")
    assert bench.timing()["left_out"] == ["null: a device"]


async def test_absolute_and_escaping_symlinks_are_left_out(anywhere: Bench):
    """Neither this machine's files nor what lies beside the workspace is kept, nor a link that would lead there."""
    await anywhere.does(
        {"link": "passwd", "to": "/etc/passwd"},
        {"link": "up", "to": "../.home"},
        {"write": "d/x.md"},
        {"link": "d/up", "to": ".."},
        {"link": "roundabout", "to": "d/up/../.home"},
    )
    left = anywhere.timing()["left_out"]
    assert [line.split(":")[0] for line in left if "leads out" in line] == ["passwd", "roundabout", "up"]
    assert "/etc/passwd" in left[0] or "/etc/passwd" in "".join(left)
    assert not {"cwd/passwd", "cwd/up", "cwd/roundabout"} & set(anywhere.files())


async def test_symlinks_that_stay_inside(anywhere: Bench):
    """They are kept where there are links; elsewhere one to a file is a copy, and one to a folder is left out."""
    await anywhere.does(
        {"write": "d/x.md", "text": "text"},
        {"link": "file", "to": "d/x.md"},
        {"link": "folder", "to": "d"},
        {"link": "nowhere", "to": "gone"},
    )
    assert anywhere.text("cwd/file") == "text"
    if "://" in anywhere.root:
        assert [line.split(":")[0] for line in anywhere.timing()["left_out"]] == ["folder", "nowhere"]
    else:
        workspace = Path(anywhere.root, "skill/create-1/cwd")
        assert [str((workspace / name).readlink()) for name in ("file", "folder", "nowhere")] == ["d/x.md", "d", "gone"]
        assert anywhere.timing()["left_out"] == []


async def test_names_that_are_no_text(anywhere: Bench):
    """A file may be called anything; a store that cannot have the name is told to do without."""
    program = "open(b'caf\\xe9.md', 'w').close(); open('ok.md', 'w').close()"
    program += "; open('tab\\t.md', 'w').close(); open('no-break\\xa0space.md', 'w').close()"
    await anywhere.run("x", harness=Harness(command=(sys.executable, "-S", "-X", "utf8", "-c", program, "{prompt}")))
    assert "cwd/no-break\xa0space.md" in anywhere.files()
    if "://" in anywhere.root:
        left = anywhere.timing()["left_out"]
        assert [line.split(": ")[1] for line in left] == ["a name that this store cannot have"] * 2
    else:
        assert "cwd/caf\udce9.md" in anywhere.files()
    assert "cwd/ok.md" in anywhere.files()


async def test_fifty_megabytes_of_output(anywhere: Bench):
    """The transcript is bounded and says that something is missing; tokens and the message are still right."""
    anywhere.more["printed"] = Caps(stdout=1 << 19, tail=1 << 14)
    usage = {"usage": {"input_tokens": 7, "output_tokens": 3}}
    trace = await anywhere.does({"print": "x" * 1023 + "\n", "times": 50 << 10}, {"say": "the end"}, usage)
    assert (trace.output, trace.usage.input_tokens, anywhere.timing()["truncated"]) == (
        "the end",
        7,
        ["transcript.jsonl"],
    )
    assert len(anywhere.text("transcript.jsonl")) < 530_000
    assert (await anywhere.does({"say": "again"})).output == "the end"


async def test_a_large_workspace_is_bounded(bench: Bench):
    """Files that are too large, or too many, are named and left out."""
    bench.more["workspace"] = TreeCaps(file=1000, total=1500, entries=100)
    await bench.does(
        {"write": "a.txt", "text": "x" * 900},
        {"write": "b.txt", "text": "x" * 1001},
        {"write": "c.txt", "text": "x" * 900},
    )
    assert bench.timing()["truncated"] == ["cwd/b.txt", "cwd/c.txt"]
    assert [path for path in bench.files() if path.startswith("cwd/")] == ["cwd/a.txt"]


async def test_a_workspace_of_very_many_files(bench: Bench):
    """There is an end to what is kept."""
    bench.more["workspace"] = TreeCaps(entries=10)
    await bench.run("x", harness=Harness(command=("sh", "-c", "for n in $(seq 50); do touch $n; done # {prompt}")))
    assert len([path for path in bench.files() if path.startswith("cwd/")]) == 10
    assert "more than 10 entries" in bench.timing()["left_out"][0]


async def test_folders_without_rights_and_without_end(bench: Bench):
    """A tool may take the rights to its own folders away, or nest them deeper than a path can be: the room is gone."""
    script = "mkdir -p locked/x; touch locked/x/y; chmod 000 locked"
    deep = "import os\nfor _ in range(1200):\n    os.mkdir('deeper'); os.chdir('deeper')"
    await bench.run(
        "x", harness=Harness(command=("sh", "-c", f'{script}; {sys.executable} -S -c "$0" # {{prompt}}', deep))
    )
    assert left_in(bench.rooms) == []
    assert "a path of more than 768 bytes" in bench.timing()["left_out"][-1]


async def test_a_grandchild_does_not_write_after_the_attempt(bench: Bench):
    """When the workspace is copied, nobody is at work in it any more."""
    pid = bench.folder / "pid"
    await bench.does({"fork": [{"pid": str(pid)}, {"sleep": 600}], "detached": True}, {"await": str(pid)})
    assert not running(pid.read_text())


async def test_a_cancelled_attempt_leaves_nothing(bench: Bench):
    """No process, no room, no lock, and no attempt that looks complete."""
    pid = bench.folder / "pid"
    task = asyncio.create_task(bench.does({"pid": str(pid)}, {"sleep": 600}))
    await until(pid.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running(pid.read_text())
    assert left_in(bench.rooms) == []
    assert "timing.json" not in bench.files()


async def test_cwd_within_the_users_prompt_is_not_replaced(bench: Bench):
    """The original put the workspace's path there."""
    trace = await bench.run("explain {cwd} and {query}", harness=Harness(command=("echo", "{prompt}")))
    assert trace.output == "explain {cwd} and {query}"


TRIGGER = TriggerSkill(name="briefs", description="Writes product briefs.\nAlso: short ones")


async def test_a_query_that_loads_the_skill(bench: Bench):
    """The skill is there by name and description; its body asks for the canary, and nothing else of it is staged."""
    bench.staged = StagedCase(folder="q000")
    trace = await bench.run("please write product briefs", layout="queries", trigger=TRIGGER)
    attempt = "queries/q000-r0"
    assert isinstance(trace.steps[0].output, dict)
    assert trace.steps[0].output["loaded"] is True
    assert bench.timing(attempt)["loaded"] is True
    staged = [path for path in bench.files(attempt) if path.startswith("cwd/")]
    assert staged == [f"cwd/.agents/skills/briefs-trig-{DIGITS}/SKILL.md"]
    assert bench.text(staged[0], attempt) == (
        f"---\nname: briefs-trig-{DIGITS}\ndescription: |\n  Writes product briefs.\n  Also: short ones\n---\n\n"
        "# briefs\n\n"
        "This skill handles: Writes product briefs.\nAlso: short ones\n\n"
        f"Begin your reply with the exact token `{TOKEN}`, then continue.\n"
    )
    assert bench.text("prompt.txt", attempt) == "please write product briefs"


async def test_a_query_that_does_not_load_it(bench: Bench):
    """The name of the skill in a listing is no loading."""
    bench.staged = StagedCase(folder="q000")
    await bench.run("what is the weather", layout="queries", trigger=TRIGGER)
    assert bench.timing("queries/q000-r0")["loaded"] is False
    assert DIGITS in bench.text("transcript.jsonl", "queries/q000-r0")


async def test_a_canary_split_over_stream_deltas(bench: Bench):
    """No piece of the transcript has all of it."""
    bench.staged = StagedCase(folder="q000")
    await bench.does({"stream": [TOKEN[:12], TOKEN[12:]]}, layout="queries", trigger=TRIGGER)
    assert TOKEN not in bench.text("transcript.jsonl", "queries/q000-r0")
    assert bench.timing("queries/q000-r0")["loaded"] is True


async def test_a_canary_in_what_is_not_kept(bench: Bench):
    """All that is printed is listened to."""
    bench.staged = StagedCase(folder="q000")
    bench.more["printed"] = Caps(stdout=4096, tail=512)
    noise = {"print": "x" * 999 + "\n", "times": 20}
    await bench.does(noise, {"print": f"{TOKEN}\n"}, noise, layout="queries", trigger=TRIGGER)
    assert TOKEN not in bench.text("transcript.jsonl", "queries/q000-r0")
    assert bench.timing("queries/q000-r0")["loaded"] is True


async def test_a_query_whose_harness_is_missing_was_not_measured(bench: Bench):
    """It says neither that the skill was loaded nor that it was not."""
    bench.staged = StagedCase(folder="q000")
    await bench.fails("x", layout="queries", trigger=TRIGGER, harness=Harness(command=("no-such-tool", "{prompt}")))
    assert "loaded" not in bench.timing("queries/q000-r0")


@pytest.mark.parametrize("said", ["", "\n"])
async def test_a_query_of_a_tool_that_says_nothing_was_not_measured(bench: Bench, said: str):
    """It ended well, and could not have said that it loaded the skill; `timing.json` says so."""
    bench.staged = StagedCase(folder="q000")
    silent = Harness(command=("printf", said, "{prompt}"))
    error = await bench.fails("write product briefs", layout="queries", trigger=TRIGGER, harness=silent)
    assert (error.type, error.retryable) == ("silent", False)
    timing = bench.timing("queries/q000-r0")
    assert timing["status"] == "ok"
    assert timing["reason"].startswith("it printed nothing")
    assert "loaded" not in timing


async def test_a_skill_is_staged_where_the_tool_looks(bench: Bench):
    """`skill_dir` is below the workspace."""
    harness = Harness(command=(*COMMAND, "--skills", ".claude/skills"), skill_dir=".claude/skills")
    bench.staged = StagedCase(folder="q000")
    await bench.run("write product briefs", layout="queries", trigger=TRIGGER, harness=harness)
    assert bench.timing("queries/q000-r0")["loaded"] is True


async def test_many_attempts_at_a_time(bench: Bench):
    """They share nothing but the machine."""
    tool = bench.tool(bench.agent(), runs=8)
    prompts = [CaseInput(prompt=steps({"write": "mine.md", "text": str(n)}, {"say": str(n)})) for n in range(1, 9)]
    traces = await asyncio.gather(*(tool.run(p, case_id="c", attempt=n) for n, p in enumerate(prompts, 1)))
    assert [trace.output for trace in traces] == [str(n) for n in range(1, 9)]
    assert [bench.text("cwd/mine.md", f"skill/create-1/run-{n}") for n in range(1, 9)] == [str(n) for n in range(1, 9)]

"""Attempts of skill evals: what is kept of them, in folders of this machine and of a real S3 server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from support.attempt_bench import Bench
from support.attempts import elsewhere
from support.scripted_harness import left_in, steps, until
from trunchray.adapters.store import Store
from trunchray.core.case import CaseInput
from trunchray.core.staging import StagedCase
from trunchray.core.trial import Trace


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


async def test_many_attempts_at_a_time(bench: Bench):
    """They share nothing but the machine."""
    tool = bench.tool(bench.agent(), runs=8)
    prompts = [CaseInput(prompt=steps({"write": "mine.md", "text": str(n)}, {"say": str(n)})) for n in range(1, 9)]
    traces = await asyncio.gather(*(tool.run(p, case_id="c", attempt=n) for n, p in enumerate(prompts, 1)))
    assert [trace.output for trace in traces] == [str(n) for n in range(1, 9)]
    assert [bench.text("cwd/mine.md", f"skill/create-1/run-{n}") for n in range(1, 9)] == [str(n) for n in range(1, 9)]

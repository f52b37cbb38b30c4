"""Queries that a skill should be loaded for: the canary tells."""

from __future__ import annotations

import pytest

from support.attempt_bench import DIGITS, TOKEN, Bench
from support.scripted_harness import COMMAND
from trunchray.adapters.harness_process import Caps
from trunchray.core.agent import TriggerSkill
from trunchray.core.harness import Harness
from trunchray.core.staging import StagedCase

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

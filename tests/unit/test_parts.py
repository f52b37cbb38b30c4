from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import JsonValue

from trunchray.adapters import parts
from trunchray.core.receipt import Mark
from trunchray.core.trial import (
    NOT_GRADED,
    Asked,
    Failure,
    Result,
    Step,
    Timing,
    ToolCall,
    Trace,
    Trial,
    Usage,
    Verdict,
)
from trunchray.errors import StoreError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def result(key: str = "k", **changes: Any) -> Result:
    fields: dict[str, Any] = {
        "trial": Trial(key=key, case_id="c", agent="a", attempt=1),
        "eval_id": "e",
        "agent_digest": "d",
        "trace": Trace(output="out"),
        "verdict": Verdict(passed=True, score=1),
        "started_at": NOW,
        "ended_at": NOW,
    }
    return Result(**(fields | changes))


def stored(*results: Result) -> list[dict[str, Any]]:
    rows = [parts.row(one, release_digest="r", versions='{"trunchray":"1"}') for one in results]
    return parts.decode(parts.encode(rows)).to_pylist()


def test_a_whole_row_comes_back():
    """Everything a trial left behind is in its row, with its units, under its names."""
    trace = Trace(
        output="7 €",
        finish_reason="length",
        tool_calls=(ToolCall(tool_call_id="1", tool_name="f", input={"x": 1}, error="no such tool"),),
        steps=(Step(kind="model", name="m", output={"text": "7 €"}),),
        usage=Usage(input_tokens=5, output_tokens=2),
        cost_usd=0.25,
        model="m-1",
        request_id="q",
        retries=2,
        waited=1.5,
    )
    latency = Timing(queued=1, model=2, tools=3, evaluator=4, total=9)
    (row,) = stored(result(trace=trace, latency=latency, verdict=Verdict(passed=False, score=0.5, details={"a": [1]})))
    assert (row["outcome"], row["passed"], row["score"], row["details"]) == ("failed", False, 0.5, '{"a":[1]}')
    assert (row["output"], row["finish_reason"], row["cost_usd"]) == ("7 €", "length", 0.25)
    assert row["usage"] == {"input": 5, "output": 2, "cached": None, "reasoning": None}
    assert row["latency"] == {"queued": 1, "model": 2, "tools": 3, "evaluator": 4, "total": 9}
    assert '"toolName":"f"' in row["tool_calls"]
    assert (row["retries"], row["rate_limit_wait"], row["model"], row["request_id"]) == (2, 1.5, "m-1", "q")
    assert row["started_at"] == NOW


def test_an_error_row_has_a_reason_and_no_verdict():
    """A trial that failed outside the model neither passed nor failed; what it generated is kept."""
    failure = Failure(boundary="evaluator", type="timeout", message="5 s", retryable=False)
    kept, bare = stored(result(verdict=None, failure=failure), result(verdict=None, failure=failure, trace=None))
    assert kept["failure"] == {"boundary": "evaluator", "type": "timeout", "message": "5 s", "retryable": False}
    assert (kept["outcome"], kept["passed"], kept["score"], kept["output"]) == ("error", None, None, "out")
    assert (bare["output"], bare["usage"]) == (None, None)


def test_half_a_surrogate_pair_does_not_lose_a_row():
    """Text that UTF-8 cannot carry is stored with a replacement character in its place."""
    trace = Trace(output="a\ud800b", steps=(Step(kind="model", name="m", output="\udfff"),))
    (row,) = stored(result(trace=trace))
    assert row["output"] == "a\ufffdb"
    assert "\ufffd" in row["steps"]


@pytest.mark.parametrize("levels", [99, 100, 126, 127, 5_000])
def test_a_row_can_be_read_however_deep_its_steps_are_nested(levels: int):
    """What models and tools say is stored whole, or else down to some level; no other row is lost with it."""
    said: JsonValue = "deep"
    for _ in range(levels):
        said = {"a": [said]}  # two levels
    row = parts.row(
        result(trace=Trace(output="7", steps=(Step(kind="tool", name="f", output=said),))),
        release_digest="r",
        versions="{}",
    )
    (record,) = parts.records(parts.decode(parts.encode([row])))
    (step,) = record["steps"]
    assert (step["name"], list(step["output"])) == ("f", ["a"])
    assert ("(nested too deeply)" in repr(step)) == (levels > 99)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other schema"])
def test_what_is_not_a_part_is_refused(damage: str):
    """Torn, damaged and foreign files are a StoreError, never rows."""
    content = bytearray(
        parts.encode(
            [
                parts.row(result(f"k{n}", trace=Trace(output="x" * 999)), release_digest="r", versions="{}")
                for n in range(50)
            ]
        )
    )
    if damage == "empty":
        content = bytearray()
    elif damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "flipped":
        content[200] ^= 0x40
    else:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"trial_key": [1, 2]}), sink)
        content = bytearray(sink.getvalue().to_pybytes())
    with pytest.raises(StoreError):
        parts.decode(bytes(content))


def test_a_shard_may_hold_more_than_one_array_does():
    """Rows are picked from a shard whose texts are more than 2 GiB together, without copying them."""
    large = pa.array(["x" * 50_000_000])
    (row,) = parts.decode(parts.encode([parts.row(result(), release_digest="r", versions="{}")])).to_batches()
    place = parts.SCHEMA.get_field_index("output")
    keys = [f"k{number}" for number in range(50)]
    tables = [
        pa.Table.from_batches([row])
        .set_column(place, parts.SCHEMA.field("output"), large)
        .set_column(0, parts.SCHEMA.field("trial_key"), pa.array([key]))
        for key in keys
    ]
    before = pa.total_allocated_bytes()
    chosen = parts.choose(tables, keys[::-1])
    assert chosen.column("trial_key").to_pylist() == keys[::-1]
    assert chosen.nbytes > 2**31
    assert pa.total_allocated_bytes() - before < 2**20


TRACE = Trace(
    output="7 €",
    finish_reason="tool-calls",
    tool_calls=(
        ToolCall(tool_call_id="1", tool_name="f", input={"x": [1, 2.5]}, output=None, error="no such tool"),
        ToolCall(tool_call_id="2", tool_name="g", input="{not json", output={"y": None}),
    ),
    steps=(
        Step(kind="model", name="m", input={"messages": 2}, output={"text": "7 €", "usage": {"inputTokens": 5}}),
        Step(kind="limit", name="max_steps", input=10),
    ),
    usage=Usage(input_tokens=5, output_tokens=2, reasoning_tokens=1),
    cost_usd=0.25,
    model="m-1",
    request_id="q",
    retries=2,
    waited=1.5,
    model_seconds=2,
    tools_seconds=3,
    cache_hits=1,
    saved_tokens=4,
)
LATENCY = Timing(queued=1, model=2, tools=3, evaluator=4, total=9)
LATE = Failure(boundary="evaluator", type="timeout", message="5 s", retryable=False)
GONE = Failure(boundary="provider", type="timeout", message="no answer", retryable=True)


def answers(*results: Result, places: list[int] | None = None) -> list[Asked]:
    rows = [parts.row(one, release_digest="r", versions="{}") for one in results]
    return [asked for _, asked in parts.answers(parts.decode(parts.encode(rows)), places)]


def test_what_is_searched_for_words_is_quickly_unpacked(tmp_path: Path):
    """In the results, that is; all else there is packed to be small, and no column is left as it is."""
    with parts.ResultsFile(tmp_path / "results.parquet") as results:
        for verdict, failure in ((Verdict(passed=True, score=1, message="fine"), None), (None, LATE)):
            one = result(trace=TRACE, latency=LATENCY, verdict=verdict, failure=failure)
            results.add(parts.decode(parts.encode([parts.row(one, release_digest="r", versions="{}")])))
    group = pq.ParquetFile(tmp_path / "results.parquet").metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert {column.compression for column in columns} == {"LZ4", "ZSTD"}
    assert [column.path_in_schema for column in columns if column.compression == "LZ4"] == [
        "failure.message",
        "message",
        "output",
    ]


def test_an_answer_comes_back_as_it_was():
    """What a row keeps of an answer is all that grading it needs, and a row made of it again is the same."""
    one = result(trace=TRACE, latency=LATENCY)
    (asked,) = answers(one)
    assert asked == Asked(started_at=NOW, seconds=5, queued=1, trace=TRACE, failure=None)
    assert stored(result(trace=asked.trace, latency=LATENCY)) == stored(one)
    assert answers(one, result(key="other"), places=[1]) == answers(result(key="other"))


def test_only_whole_answers_can_be_graded():
    """An error of grading leaves an answer without one; any other error stays what it is, with what there was."""
    ungraded = result(trace=TRACE, latency=LATENCY, verdict=None, failure=LATE)
    dead = Failure(boundary="sandbox", type="start_failed", message="no", retryable=True)
    grader, tools = (
        result(trace=TRACE, latency=LATENCY, verdict=None, failure=dead, evaluator_digest=one) for one in ("d", None)
    )
    bare, cut = (result(trace=trace, latency=LATENCY, verdict=None, failure=GONE) for trace in (None, TRACE))
    assert [asked.failure for asked in answers(ungraded, grader, tools, bare, cut)] == [None, None, dead, GONE, GONE]
    assert [asked.trace for asked in answers(ungraded, grader, tools, bare, cut)] == [TRACE, TRACE, TRACE, None, TRACE]
    assert [one.gradable for one in (ungraded, grader, tools, bare, cut)] == [True, True, False, False, False]
    table = parts.decode(
        parts.encode(
            [parts.row(one, release_digest="r", versions="{}") for one in (ungraded, grader, tools, bare, cut)]
        )
    )
    assert [mark.gradable for _, mark in parts.marks(table)] == [True, True, False, False, False]
    assert [row.gradable for row in parts.graded(table)] == [True, True, False, False, False]
    assert [row.message for row in parts.graded(table)][::3] == [
        "evaluator/timeout: 5 s",
        "provider/timeout: no answer",
    ]


def test_answers_that_nobody_was_to_grade():
    """Grading has not failed on them; a regrade has their answers nonetheless."""
    nobody = Failure(boundary="evaluator", type=NOT_GRADED, message="nobody", retryable=False)
    one = result(trace=TRACE, verdict=None, failure=nobody, evaluator_digest="d")
    table = parts.decode(parts.encode([parts.row(one, release_digest="r", versions="{}")]))
    (mark,) = (mark for _, mark in parts.marks(table))
    assert (mark.not_graded, mark.gradable, one.gradable) == (True, False, False)
    assert [row.gradable for row in parts.graded(table)] == [False]
    assert [asked.failure for _, asked in parts.answers(table)] == [None]


def test_the_latency_of_reports_is_that_of_what_is_tested():
    """What its grader took, and our own work, is left out; the row has both."""
    latency = Timing(queued=1, model=2, tools=3, evaluator=40, total=50)
    table = parts.decode(parts.encode([parts.row(result(latency=latency), release_digest="r", versions="{}")]))
    assert [row.latency for row in parts.counted(table)] == [5]


def test_a_reused_answer_is_free():
    """It was paid for when it was asked for: its row says what it cost, and counts for nothing that is spent."""
    paid, reused = (result(trace=TRACE, reused=one) for one in (False, True))
    table = parts.decode(parts.encode([parts.row(one, release_digest="r", versions="{}") for one in (paid, reused)]))
    assert [mark for _, mark in parts.marks(table)] == [Mark("passed", 3, cost=250_000_000), Mark("passed", 0)]
    assert [row.cost_usd for row in parts.counted(table)] == [0.25, 0.25]


def test_parts_of_earlier_versions():
    """Rows without the latest columns are rows of trials that never failed before, and count beside new ones."""
    new = parts.decode(parts.encode([parts.row(result(earlier_errors=2), release_digest="r", versions="{}")]))
    sink = pa.BufferOutputStream()
    pq.write_table(new.drop_columns(["earlier_errors", "reused"]), sink)
    old = parts.decode(sink.getvalue().to_pybytes())
    assert [(row["earlier_errors"], row["reused"]) for row in old.to_pylist()] == [(0, False)]
    assert [row.earlier_errors for row in parts.counted(parts.choose([new, old], ["k"]))] == [0]
    assert [row.earlier_errors for row in parts.counted(parts.choose([old, new], ["k"]))] == [2]

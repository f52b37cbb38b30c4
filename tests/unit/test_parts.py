from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trunchray.adapters import parts
from trunchray.core.trial import Failure, Result, Step, Timing, ToolCall, Trace, Trial, Usage, Verdict
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

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunchray.adapters import parts
from trunchray.core.trial import Result, Trace, Trial, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows(*keys: str, worker: str = "") -> Any:
    """A part with these trials."""
    results = [
        Result(
            trial=Trial(key=key, case_id="c", agent="a", attempt=1),
            eval_id="e",
            agent_digest="d",
            trace=Trace(output="out"),
            verdict=Verdict(passed=True, score=1),
            started_at=NOW,
            ended_at=NOW,
            worker=worker,
        )
        for key in keys
    ]
    return parts.decode(parts.encode([parts.row(one, release_digest="r", versions="{}") for one in results]))


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4), max_size=5), st.permutations("abcdef"))
def test_the_row_listed_last_counts(tables: list[list[str]], order: list[str]):
    """For a trial that several parts hold, the last listed one counts; rows come in the order that is asked for."""
    chosen = parts.choose([rows(*keys, worker=f"{n}") for n, keys in enumerate(tables)], order).to_pylist()
    last = {key: str(n) for n, keys in enumerate(tables) for key in keys}
    assert [(row["trial_key"], row["worker"]) for row in chosen] == [(key, last[key]) for key in order if key in last]


@given(st.lists(st.integers(0, 40), max_size=8))
def test_a_results_file_does_not_show_how_its_rows_came(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]):
    """The same rows in the same order make the same bytes, in one piece or in many."""
    table = rows(*(f"k{n}" for n in range(sum(sizes)))) if any(sizes) else parts.SCHEMA.empty_table()
    folder = tmp_path_factory.mktemp("results")

    def write(path: Path, pieces: list[Any]) -> bytes:
        with parts.ResultsFile(path) as file:
            for piece in pieces:
                file.add(piece)
        return path.read_bytes()

    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    pieces = [table.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
    assert write(folder / "a", [table]) == write(folder / "b", pieces)

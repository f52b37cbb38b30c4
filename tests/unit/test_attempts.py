"""Attempts as data: where they are kept and what is known of them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trunchray.core.attempt import AttemptTiming
from trunchray.core.staging import Fixture, StagedCase, Staging


def staging(**given: object) -> Staging:
    return Staging.model_validate({"root": "out/x", "cases": {"c": {"folder": "create-1"}}} | given)


def test_one_run_has_the_folder_of_its_case():
    """`run-N` folders are there only where there is more than one."""
    assert staging().folder("skill", "c", 1) == "skill/create-1"
    assert staging(runs=3).folder("bare", "c", 2) == "bare/create-1/run-2"


def test_queries_count_their_runs_from_zero():
    """As the documented layout does, while attempts count from 1."""
    queries = staging(layout="queries", runs=3, cases={"c": {"folder": "q003"}})
    assert queries.folder("skill", "c", 1) == "queries/q003-r0"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "~/x", ".", "", "C:/x", "a\\b", "a\0b"])
def test_a_fixture_stays_in_the_workspace(path: str):
    """No path leads out of it, on any system."""
    with pytest.raises(ValidationError):
        Fixture(path=path, sha256="a" * 64)


def test_a_case_is_called_as_it_was_authored():
    """Its id as text; a query by its folder."""
    assert StagedCase(folder="a_b", case={"id": "a/b"}).name == "a/b"
    assert StagedCase(folder="7", case={"id": 7}).name == "7"
    assert StagedCase(folder="q000").name == "q000"


def test_timing_has_the_documented_fields():
    """All of them are there, in their order; `reason` and `loaded` only where there is one."""
    timing = AttemptTiming(case_id="c", config="skill", status="skipped", captured_at="2026-01-01T00:00:00Z")
    shown = timing.model_dump(mode="json")
    documented = (
        "case_id config status elapsed_s return_code input_tokens output_tokens total_tokens tokens_reported "
        "total_steps total_tool_calls captured_at"
    )
    assert [name for name in shown if name in documented.split()] == [
        name for name in AttemptTiming.model_fields if name in documented.split()
    ]
    assert set(documented.split()) <= shown.keys()
    assert {"reason", "loaded"}.isdisjoint(shown)
    assert timing.model_copy(update={"loaded": False, "reason": "x"}).model_dump()["loaded"] is False
    assert AttemptTiming.model_validate_json(timing.model_dump_json()) == timing

"""Trigger queries: what their files may say, and what is told of those that say something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.skill.trigger_file import TriggerQuery, read_queries


def read(folder: Path, content: Any) -> tuple[TriggerQuery, ...]:
    file = folder / "triggers.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return read_queries(file)


def refused(folder: Path, content: Any) -> str:
    """What is said of a file, without its name."""
    with pytest.raises(UsageError) as error:
        read(folder, content)
    assert error.value.exit_code == 2
    return str(error.value).replace(f"{folder / 'triggers.json'}", "F")


def test_queries_are_told_apart_by_their_place_and_not_merged_by_their_text(tmp_path: Path):
    """The same query twice, with other keys beside: two of them, each with a folder of its own."""
    found = read(
        tmp_path, [{"query": " q ", "should_trigger": True}, {"query": " q ", "should_trigger": True, "reason": 1}]
    )
    assert [(one.index, one.folder, one.query, one.should_trigger) for one in found] == [
        (0, "q000", " q ", True),
        (1, "q001", " q ", True),
    ]


def test_a_query_that_should_trigger_and_should_not_is_refused(tmp_path: Path):
    """Whatever a tool does, one of the two would not be as it should be."""
    content = [{"query": "q", "should_trigger": True}, {"query": "r", "should_trigger": True}]
    assert refused(tmp_path, [*content, {"query": " q", "should_trigger": False}]) == (
        "F: [2]: the query ' q' should not trigger, and [0] says of the same one that it should; keep one of them"
    )


def test_whether_a_skill_should_trigger_is_never_assumed(tmp_path: Path):
    """A query that does not say is refused; it is not taken for one that should."""
    assert refused(tmp_path, [{"query": "q"}]) == (
        "F: [0]: has no 'should_trigger'; a query needs 'query' and 'should_trigger', and this one has 'query'"
    )
    assert refused(tmp_path, [{"query": "q", "should_trigger": "yes"}]) == (
        "F: [0]: 'should_trigger' must be true or false (got 'yes')"
    )


def test_an_empty_query_is_refused(tmp_path: Path):
    """Nothing would be sent."""
    assert refused(tmp_path, [{"query": "", "should_trigger": True}]) == (
        "F: [0]: 'query' is empty, so nothing would be sent (got '')"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [{"prompt": "q", "should_trigger": True}],
            (
                "F: [0]: has no 'query'; a query needs 'query' and 'should_trigger', and this one has 'prompt', "
                "'should_trigger'"
            ),
        ),
        (
            {"cases": [{"query": "q"}]},
            "F: trigger queries are a list of objects with 'query' and 'should_trigger', not an object with 'cases'",
        ),
        (
            {"should_trigger": ["q"], "should_not_trigger": []},
            (
                "F: trigger queries are a list of objects with 'query' and 'should_trigger', not an object with "
                "'should_trigger', 'should_not_trigger'"
            ),
        ),
        (["q"], "F: [0]: a query is an object with 'query' and 'should_trigger', not 'q'"),
        ([], "F: has no queries; write at least one object with 'query' and 'should_trigger'"),
    ],
)
def test_files_of_other_formats_are_told_what_is_missing(tmp_path: Path, content: Any, message: str):
    """Half of the published files deviate; each is told what to mend."""
    assert refused(tmp_path, content) == message

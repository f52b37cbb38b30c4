"""Rows in the words of other tools."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from support.rows import NOW, error_row, tool_row
from trunchray.core.agent import ModelAgent
from trunchray.core.case import Case
from trunchray.core.plan import make_plan
from trunchray.core.report import ModelReport, Planned
from trunchray.core.run import RunSpec
from trunchray.core.tally import Tally
from trunchray.frontends.exports import inspect_log, openai_evals
from trunchray.frontends.exports.flat import write_csv, write_jsonl
from trunchray.frontends.exports.subject import Subject

CASE = Case.model_validate(
    {
        "id": "c",
        "evalId": "e",
        "title": "A case",
        "input": {"prompt": "Which one?", "systemPrompt": "Be brief."},
        "data": {"secret": "of graders"},
        "checks": {"check": {"kind": "exact", "expected": "that one"}},
        "source": {"path": "e.ts"},
    }
)
AGENT = ModelAgent(name="a", model="mock/echo")


def subject(*, private: bool = False) -> Subject:
    spec = RunSpec(run_id="r", title="t", release="x", release_digest="d" * 64, agents=(AGENT,))
    plan = make_plan(spec, [("c", "e")])
    planned = Planned.of(plan)
    report: ModelReport = Tally(planned).model(planned.models[0])
    return Subject(plan, AGENT, report, NOW.isoformat(), NOW.isoformat(), private)


def everything(row: dict[str, Any], *, private: bool) -> str:
    """All that both kinds of log say of a trial."""
    about = subject(private=private)
    return json.dumps([*openai_evals.events(about, row, CASE, 0), inspect_log.sample(about, row, CASE)])


def test_a_table_has_no_groups_and_a_cell_for_everything():
    """Every column is there in every row, whatever the row lacks; values of several parts are JSON."""
    file = io.StringIO()
    rows = [tool_row(), error_row()]
    assert write_csv(rows, rows[0], file) == 2
    called, failed = csv.DictReader(io.StringIO(file.getvalue()))
    assert list(called) == list(failed)
    assert (called["usage_input"], called["failure_type"], called["passed"]) == ("5", "", "false")
    assert (failed["usage_input"], failed["failure_type"], failed["passed"]) == ("", "timeout", "")
    assert json.loads(called["tool_calls"])[0]["toolName"] == "look"
    assert called["started_at"] == NOW.isoformat()


def test_texts_come_back_from_a_table_as_they_were():
    """Commas, quotes, line ends, formulas and other alphabets are data."""
    text = 'a,"b"\r\nc\n=1+1\t€ 漢 \u2028 🙂'
    file = io.StringIO(newline="")
    write_csv([tool_row(output=text)], tool_row(), file)
    (row,) = csv.DictReader(io.StringIO(file.getvalue(), newline=""))
    assert row["output"] == text


def test_a_line_is_a_line_for_every_reader():
    """Also where a text has separators that some readers take for the end of a line."""
    file = io.StringIO()
    assert write_jsonl([tool_row(output="a\u2028b\u2029c\x85d\ne"), error_row()], file) == 2
    lines = file.getvalue().splitlines()
    assert [json.loads(line)["output"] for line in lines] == ["a\u2028b\u2029c\x85d\ne", None]


def test_private_answers_are_told_only_when_asked_for():
    """Expected answers and data of graders stay out of logs that people hand around."""
    row = tool_row() | {"message": "it is not that one", "details": {"accepted": "that one"}}
    assert "that one" not in everything(row, private=False)
    assert everything(row, private=True).count("that one") == everything(tool_row(), private=True).count("that one") + 4
    assert "of graders" not in everything(tool_row(), private=True)


def test_a_log_of_inspect_has_the_whole_conversation():
    """Question, calls with their arguments, what tools gave, and the answer, in order."""
    sample = inspect_log.sample(subject(), tool_row(), CASE)
    assert [message["role"] for message in sample["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert sample["messages"][2]["tool_calls"][0]["arguments"] == {"at": 1}
    assert sample["messages"][3]["content"] == "seen"
    assert sample["scores"]["verdict"]["value"] == "I"
    assert (sample["scores"]["score"]["value"], sample["epoch"]) == (0.5, 2)


def test_arguments_that_are_no_object_stay_readable():
    """What the model wrote is kept, beside what was wrong with it."""
    for raw, kept in (("{broken", {"text": "{broken"}), ("[1]", {"value": [1]})):
        sample = inspect_log.sample(subject(), tool_row(arguments=raw), CASE)
        (call,) = sample["messages"][2]["tool_calls"]
        assert call["arguments"] == kept
        assert call["parse_error"]


def test_no_verdict_is_an_error_in_every_log():
    """Neither a wrong answer nor a right one: something other than the model failed."""
    sample = inspect_log.sample(subject(), error_row(), CASE)
    assert "scores" not in sample
    assert sample["error"]["message"] == "provider/timeout: no answer"
    (event,) = openai_evals.events(subject(), error_row(), CASE, 7)
    assert (event["type"], event["event_id"], event["sample_id"]) == ("error", 7, "c")


def test_a_log_of_openai_evals_says_what_was_asked_and_what_was_right():
    """One sampling, one match and one score for each trial; later attempts have names of their own."""
    found = list(openai_evals.events(subject(), tool_row(), CASE, 3))
    assert [(event["type"], event["event_id"]) for event in found] == [("sampling", 3), ("match", 4), ("metrics", 5)]
    assert {event["sample_id"] for event in found} == {"c.2"}
    assert found[0]["data"]["prompt"][-1] == {"role": "user", "content": "Which one?"}
    assert found[1]["data"]["correct"] is False

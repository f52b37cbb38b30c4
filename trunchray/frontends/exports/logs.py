"""Exports with a file for each model: which files, and what is written into them."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from trunchray.core.agent import AgentSpec
from trunchray.engine.rows import StoredRows
from trunchray.frontends.exports import inspect_log, openai_evals
from trunchray.frontends.exports.flat import as_json
from trunchray.frontends.exports.subject import Subject


def write_openai_evals(rows: StoredRows, agent: AgentSpec, path: Path, *, private: bool) -> int:
    """An event log of OpenAI Evals; gives the number of trials, and writes no file when the model has no counted row.

    Expected answers are told when `private` is true.
    """
    subject = _subject(rows, agent, private=private)
    if subject is None:
        return 0
    trials, event = 0, 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        _line(file, openai_evals.spec_line(subject))
        for row in rows.records({agent.name}):
            trials += 1
            for found in openai_evals.events(subject, row, rows.cases[row["case_id"]], event):
                _line(file, found)
                event += 1
        _line(file, openai_evals.final_line(subject))
    return trials


def write_inspect(rows: StoredRows, agent: AgentSpec, path: Path, *, private: bool) -> int:
    """A log of Inspect AI; otherwise as above."""
    subject = _subject(rows, agent, private=private)
    if subject is None:
        return 0
    trials = 0
    head = json.dumps(inspect_log.head(subject, version("trunchray")), ensure_ascii=False)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(head.removesuffix("}") + ', "samples": [\n')
        for trials, row in enumerate(rows.records({agent.name}), 1):
            file.write(",\n" if trials > 1 else "")
            file.write(as_json(inspect_log.sample(subject, row, rows.cases[row["case_id"]])))
        file.write("\n]}\n")
    return trials


def _subject(rows: StoredRows, agent: AgentSpec, *, private: bool) -> Subject | None:
    """What is said of a model's rows together; None when it has none."""
    began, ended = rows.span(agent.name)
    if began is None or ended is None:
        return None
    return Subject(rows.plan, agent, rows.report(agent.name), began.isoformat(), ended.isoformat(), private)


def _line(file: TextIO, value: dict[str, Any]) -> None:
    file.write(as_json(value) + "\n")

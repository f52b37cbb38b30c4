"""A model's rows as the event log of OpenAI Evals: a line with the spec, events for each sample, a final report.

The format is that of `evals.record` in github.com/openai/evals: events of the types `sampling`, `match`, `metrics` and
`error`, each with an id, the sample it is about, and its data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunchray.core.case import Case
from trunchray.frontends.exports.subject import Subject, answer, reason

_BY = "trunchray"


def spec_line(subject: Subject) -> dict[str, Any]:
    """The first line."""
    run = subject.plan.spec
    return {
        "spec": {
            "completion_fns": [subject.agent.model],
            "eval_name": run.title,
            "base_eval": run.title,
            "split": run.release_digest[:12],
            "run_config": {
                "completion_fns": [subject.agent.model],
                "eval_spec": {"release": run.release_digest, "attempts": run.attempts},
                "seed": run.seed,
                "max_samples": None,
                "command": f"trunchray run --run-id {run.run_id}",
                "initial_settings": {"visible": True},
            },
            "created_by": _BY,
            "run_id": subject.name,
            "created_at": subject.began,
        }
    }


def events(subject: Subject, row: Mapping[str, Any], case: Case, first: int) -> Iterator[dict[str, Any]]:
    """What happened with one trial; event ids count from `first`."""
    found: list[tuple[str, dict[str, Any]]] = []
    if row["output"] is not None:
        found.append(("sampling", {"prompt": subject.question(case), "sampled": [answer(row)]}))
    if row["failure"] is not None:
        found.append(("error", {"type": row["failure"]["type"], "message": reason(row)}))
    else:
        expected, (message, _) = subject.target(case), subject.remarks(row)
        found += [
            ("match", {"correct": row["passed"], "expected": expected, "picked": None, "sampled": answer(row)}),
            ("metrics", {"score": row["score"], "message": message}),
        ]
    for number, (kind, data) in enumerate(found, first):
        yield {
            "run_id": subject.name,
            "event_id": number,
            "sample_id": sample_id(row),
            "type": kind,
            "data": data,
            "created_by": _BY,
            "created_at": row["ended_at"].isoformat(),
        }


def final_line(subject: Subject) -> dict[str, Any]:
    """The last line."""
    report = subject.report
    return {
        "final_report": {
            "accuracy": report.pass_rate,
            "score": report.mean_score,
            "score_se": report.mean_score_se,
            "planned": report.planned,
            "graded": report.passed + report.failed,
            "errors": report.error,
            "not_run": report.not_run,
        }
    }


def sample_id(row: Mapping[str, Any]) -> str:
    """Of a case, and of the attempt at it after the first."""
    return str(row["case_id"]) + (f".{row['attempt']}" if row["attempt"] > 1 else "")

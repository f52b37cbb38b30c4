"""A model's rows as a log of Inspect AI, which `inspect view` and `inspect_ai.log.read_eval_log` read.

The format is version 2 of `EvalLog` in its JSON form: one log for each model, attempts as epochs, a sample for each
trial. Two scores: `verdict`, C or I, and `score`, from 0 to 1. A trial without a verdict is a sample with an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trunchray.core.case import Case
from trunchray.frontends.exports.subject import Subject, answer, reason

_STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "content-filter": "content_filter",
    "tool-calls": "tool_calls",
}


def head(subject: Subject, version: str) -> dict[str, Any]:
    """The log without its samples; `version` is that of trunchray."""
    report, run, agent = subject.report, subject.plan.spec, subject.agent
    dataset = {"name": run.title, "samples": len(subject.plan.evals)}
    return {
        "version": 2,
        "status": "cancelled" if report.not_run else "success",
        "eval": {
            "eval_id": f"{run.release_digest[:12]}-{agent.digest[:12]}",
            "run_id": run.run_id,
            "created": subject.began,
            "task": run.title,
            "task_id": run.release_digest,
            "dataset": dataset,
            "model": agent.model,
            "model_base_url": agent.base_url,
            "model_generate_config": {"max_tokens": agent.limits.max_output_tokens},
            "model_args": agent.params,
            "config": {"epochs": run.attempts},
            "packages": {"trunchray": version},
            "metadata": {"agent": agent.name, "agent_digest": agent.digest, "release_digest": run.release_digest},
        },
        "plan": {"name": "plan", "steps": [{"solver": "generate", "params": {}}]},
        "results": {
            "total_samples": report.planned,
            "completed_samples": report.passed + report.failed,
            "scores": _figures(subject),
        },
        "stats": {
            "started_at": subject.began,
            "completed_at": subject.ended,
            "model_usage": {agent.model: _usage(report.usage.model_dump(), report.cost_usd)},
        },
    }


def sample(subject: Subject, row: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """One trial."""
    question = subject.question(case)
    usage = _usage({f"{name}_tokens": value for name, value in _counts(row["usage"])}, row["cost_usd"])
    out: dict[str, Any] = {
        "id": case.id,
        "epoch": row["attempt"],
        "input": question if len(question) > 1 else question[0]["content"],
        "target": subject.target(case),
        "messages": [*question, *_said(row["steps"] or [])],
        "output": _output(row, usage),
        "metadata": {"eval_id": case.eval_id, "title": case.title, "trial_key": row["trial_key"]},
        "model_usage": {subject.agent.model: usage} if row["usage"] else {},
        "started_at": row["started_at"].isoformat(),
        "completed_at": row["ended_at"].isoformat(),
        "total_time": row["latency"]["total"],
        "working_time": row["latency"]["total"] - row["latency"]["queued"],
        "uuid": row["trial_key"],
    }
    if row["failure"] is not None:
        return out | {"error": {"message": reason(row), "traceback": "", "traceback_ansi": ""}}
    return out | {"scores": _scores(subject, row)}


def _scores(subject: Subject, row: Mapping[str, Any]) -> dict[str, Any]:
    message, said = subject.remarks(row)
    about = {"answer": answer(row), "explanation": message}
    details = said if isinstance(said, dict) else {"details": said}
    return {
        "verdict": {"value": "C" if row["passed"] else "I", **about, "metadata": details},
        "score": {"value": row["score"], **about},
    }


def _output(row: Mapping[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    if row["output"] is None:
        return {"model": row["model"] or "", "choices": []}
    choice = {
        "message": {"role": "assistant", "content": answer(row), "source": "generate"},
        "stop_reason": _STOP_REASONS.get(row["finish_reason"], "unknown"),
    }
    return {
        "model": row["model"] or "",
        "choices": [choice],
        "completion": answer(row),
        "usage": usage,
        "time": row["latency"]["model"],
    }


def _said(steps: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages after the question: answers of the model, and what tools gave it."""
    for step in steps:
        match step["kind"]:
            case "model":
                yield _assistant(step["output"])
            case "tool":
                shown = step["output"].get("value")
                yield {
                    "role": "tool",
                    "tool_call_id": step["input"]["toolCallId"],
                    "function": step["name"],
                    "content": shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False),
                }
            case _:
                pass  # neither a limit nor what was observed is anything that was said


def _assistant(said: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said["text"], "source": "generate"}
    if calls := said.get("toolCalls"):
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call as the model made it; arguments that are no JSON object are kept as text beside what was wrong."""
    found: dict[str, Any] = {"id": call["toolCallId"], "function": call["toolName"], "type": "function"}
    try:
        arguments = json.loads(call["arguments"] or "{}")
    except ValueError as e:
        return found | {"arguments": {"text": call["arguments"]}, "parse_error": str(e)}
    if not isinstance(arguments, dict):
        return found | {"arguments": {"value": arguments}, "parse_error": "the arguments are not an object"}
    return found | {"arguments": arguments}


def _figures(subject: Subject) -> list[dict[str, Any]]:
    report = subject.report
    named = {
        "verdict": {"accuracy": report.pass_rate},
        "score": {"mean": report.mean_score, "stderr": report.mean_score_se},
    }
    return [
        {
            "name": scorer,
            "scorer": scorer,
            "metrics": {name: {"name": name, "value": value} for name, value in metrics.items() if value is not None},
        }
        for scorer, metrics in named.items()
    ]


def _counts(usage: Mapping[str, int | None] | None) -> list[tuple[str, int | None]]:
    names = {"input": "input", "output": "output", "cached": "cached_input", "reasoning": "reasoning"}
    return [(there, (usage or {}).get(here)) for here, there in names.items()]


def _usage(tokens: Mapping[str, int | None], cost: float | None) -> dict[str, Any]:
    read, written = tokens["input_tokens"] or 0, tokens["output_tokens"] or 0
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_cache_read": tokens["cached_input_tokens"],
        "reasoning_tokens": tokens["reasoning_tokens"],
        "total_cost": cost,
    }

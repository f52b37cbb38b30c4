"""Asking an agent what the judge is unsure about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from trunchray.adapters.calling import call
from trunchray.core.check_result import CheckResult
from trunchray.core.escalated import answered, unanswered
from trunchray.evaluators.python.ended import ended
from trunchray.evaluators.python.judge_scorer import JudgeScorer
from trunchray.evaluators.python.showing import shown


async def ask_again(
    scorer: JudgeScorer, first: CheckResult, state: JsonValue, agent: Any, seconds: float
) -> CheckResult:
    """The check as an agent decides it, after the `first` verdict was unsure.

    The agent's `send(prompt)` returns `{type: "reply", reply}` within so many `seconds`. When it does not, or the reply
    is not exactly one of the answers, the check fails, and its explanation begins with "escalation: ".
    """
    found = await ended(_sent(agent, prompt(scorer, state)), seconds)
    if found.complaint is not None:
        return unanswered(first, found.complaint)
    reply, reason = found.value
    return unanswered(first, reason) if reply is None else answered(scorer.rule, first, reply)


async def _sent(agent: Any, text: str) -> tuple[str | None, str]:
    """What the agent replies; or None, and why it does not."""
    back: Any = await call(agent.send, text)
    kind, reply = _part(back, "type"), _part(back, "reply")
    if kind == "reply" and isinstance(reply, str):
        return reply, ""
    return None, "suspended" if kind == "suspended" else f"send returned {shown(back)}"


def _part(back: Any, name: str) -> Any:
    return back.get(name) if isinstance(back, Mapping) else getattr(back, name, None)


def prompt(scorer: JudgeScorer, state: JsonValue) -> str:
    """The question, the state as JSON, and all that can be answered, each on a line of its own."""
    meanings = [f"- {name}: {meaning}" for name, meaning in scorer.rule.answers.items() if meaning]
    parts = [
        "Answer a question about one run of a task.",
        f"Question: {scorer.instructions}",
        f"The run, as JSON:\n{_json(state)}",
        *(["What the answers mean:\n" + "\n".join(meanings)] if meanings else []),
        "Answer with exactly one of the following, and nothing else:\n" + "\n".join(scorer.rule.answers),
    ]
    return "\n\n".join(parts)


def _json(state: JsonValue) -> str:
    return json.dumps(state, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace").decode()

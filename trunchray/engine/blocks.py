"""What keeps a run from going on, or will, and what to do about it: a sentence for each."""

from __future__ import annotations

from shlex import quote

from trunchray.core.closing import remedy
from trunchray.core.wording import ago, duration, way_to_grade, way_to_name_a_grader
from trunchray.engine.progress import AgentProgress, Snapshot
from trunchray.engine.status import Status

QUIET = 60.0
"""Seconds without a word of the driver, or the end of a trial, that are worth telling."""
MANY = 0.1
"""The share of errors among a model's rows that is worth telling."""
SOME = 3
"""Errors below which it is not."""


def blocks(status: Status) -> list[str]:
    """The most important first; nothing when all is well."""
    if status.state == "complete":
        return _errors(status)
    latest = status.latest
    said = [_waiting(status)] if status.state == "waiting" else _driven(status)
    said += _clocks(status)
    if latest:
        said += [line for agent in latest.agents if agent.done < agent.planned for line in _model(agent)]
    return said


def _errors(status: Status) -> list[str]:
    """Those of a complete run that can be mended, and how."""
    said: list[str] = []
    if count := status.retryable:
        again = f"`trunchray retry {quote(status.uri)}` asks again{_cost(status.retry_usd)}"
        if status.regrades:
            again = f"`trunchray retry {quote(status.regrades)}` asks again, and the regrade command then grades anew"
        said.append(f"{_trials(count)} ended in an error whose cause may be gone{_by_model(status)}: {again}")
    if count := status.ungraded:
        said.append(way_to_grade(count, status.regrades or status.uri))
    if count := sum(agent.counts.not_graded for agent in status.committed.agents):
        said.append(way_to_name_a_grader(count, status.regrades or status.uri))
    return said


def _by_model(status: Status) -> str:
    """How many are of which model, where there are several models."""
    agents = status.committed.agents
    counts = [f"{agent.name} {agent.counts.retryable:,}" for agent in agents if agent.counts.retryable]
    return f" ({', '.join(counts)})" if len(agents) > 1 else ""


def _cost(usd: float | None) -> str:
    return "" if usd is None else f", for about ${usd:,.2f}" if usd >= 1 else f", for about ${usd:.4f}"


def _trials(count: int) -> str:
    return f"{count:,} {'trial' if count == 1 else 'trials'}"


def _waiting(status: Status) -> str:
    command = status.latest.command if status.latest else ""
    how = f"`{command}` continues it" if command else "the same `trunchray run` command continues it"
    if "--address auto" in command:
        how = (
            f"submitting it again continues it, and so does `{command}` on a node of its cluster; what stopped it, "
            "`trunchray jobs` and `logs` say"
        )
    if status.lost is None:
        return f"nobody drives it; {how}"
    last = "" if status.heartbeat_age is None else f" (last heartbeat {ago(status.heartbeat_age)})"
    return f"nobody drives it: {status.lost} is gone{last}; {how}"


def _driven(status: Status) -> list[str]:
    latest = status.latest
    if status.committed.rows == status.committed.planned:
        return ["all trials are counted; the report is being written"]
    if latest is None or latest.final:
        return ["its driver is starting"]
    said = [f"the driver has said nothing for {duration(status.age)}"] if status.age and status.age > QUIET else []
    owed = [agent for agent in latest.agents if agent.done < agent.planned]
    if owed and all(agent.closed for agent in owed):
        return [*said, "no model is asked any more; what is in flight ends"]
    return said + _nodes(latest)


def _nodes(latest: Snapshot) -> list[str]:
    if not latest.nodes:
        return ["no worker yet: workers are starting, or wait for nodes with room for them"]
    if all(node.down >= node.workers for node in latest.nodes):
        return ["no worker answers: waiting for nodes"]
    return []


def _clocks(status: Status) -> list[str]:
    """Clocks that are too far apart for ages to mean anything."""
    if status.clock_ahead:
        side = "ahead of" if status.clock_ahead > 0 else "behind"
        return [f"the driver's clock is {duration(abs(status.clock_ahead))} {side} this machine's"]
    if status.lost and status.heartbeat and status.heartbeat_age == 0:
        return [
            f"the last heartbeat, {status.heartbeat:%Y-%m-%d %H:%M:%S} UTC, is still to come by this machine's clock"
        ]
    return []


def _model(agent: AgentProgress) -> list[str]:
    if agent.closed == "cancelled":  # which is how commands end that are stopped in order
        return []
    if agent.closed:
        why = (agent.standing and agent.standing.why) or agent.closed
        return [f"{agent.name}: no further trial is begun ({why}); {remedy(agent.closed)}"]
    said: list[str] = []
    standing, counts = agent.standing, agent.counts
    if standing and standing.cooling_for >= 1 and standing.waiting:
        said.append(
            f"{agent.name}: {standing.waiting:,} requests wait until it has cooled, {standing.cooling_for:.0f} s"
        )
    elif standing and agent.per_minute == 0 and (standing.oldest or 0) > QUIET:
        said.append(f"{agent.name}: no trial ended in the last minute; the oldest began {ago(standing.oldest or 0)}")
    if counts.error >= SOME and counts.error > MANY * counts.rows:
        said.append(f"{agent.name}: {counts.error:,} of {counts.rows:,} trials ended in an error")
    return said

"""What authors call the cases of their own evaluations and skills, which have ids made for the engine."""

from __future__ import annotations

from trunchray.adapters.runs import RunFolder
from trunchray.core.agent import HarnessAgent, ModelAgent
from trunchray.core.printable import one_line
from trunchray.engine.stored import stored_release, stored_spec

LONGEST = 60
"""Characters of a name that are told."""


def case_names(*run_uris: str) -> dict[str, str]:
    """By id, on one line and safe to print; a case that is called by its id is not in it.

    Those are the cases of benchmarks, and trigger queries, which have no names.

    Raises:
        UsageError: there is no run.
        ReleaseError: its release is gone or damaged.
    """
    found: dict[str, str] = {}
    for uri in run_uris:
        spec = stored_spec(RunFolder(uri))
        agent = spec.agents[0]
        if isinstance(agent, ModelAgent) or (isinstance(agent, HarnessAgent) and agent.trigger):
            continue
        found |= {case.id: one_line(case.title, LONGEST) for case in stored_release(spec).cases()}
    return found

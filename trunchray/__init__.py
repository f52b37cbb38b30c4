"""Distributed, resumable, reproducible LLM evaluation on Ray.

For benchmarks there is the command line, `trunchray --help`; Python programs call `evaluate`. Programs may rely on the
names below; all but the errors are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trunchray.errors import (
    AuthoringError,
    EvalFailure,
    Interrupted,
    Problem,
    ReleaseError,
    StoreError,
    TrunchrayError,
    UsageError,
)

if TYPE_CHECKING:
    from trunchray.agents.python.cancellation import CancelSignal
    from trunchray.agents.python.http_endpoint import http_endpoint
    from trunchray.agents.python.langchain import langchain
    from trunchray.agents.python.openai_agents import openai_agents
    from trunchray.agents.python.pydantic_ai import pydantic_ai
    from trunchray.agents.python.workflow import workflow
    from trunchray.core.evaluation import EvaluationReport
    from trunchray.core.experiment import Experiment
    from trunchray.core.record import RunRecord, StepRecord
    from trunchray.evaluators.judges.bars import jev, system_one
    from trunchray.evaluators.judges.scripted import ScriptedJudge
    from trunchray.evaluators.python.asking import ask
    from trunchray.evaluators.python.comparing import includes, matches
    from trunchray.evaluators.python.schema import fits_schema
    from trunchray.evaluators.python.trajectory import ran_steps, steps_at_most, under
    from trunchray.evaluators.python.words import avoids, mentions
    from trunchray.frontends.evaluation.calibrate import Calibration, acalibrate, calibrate
    from trunchray.frontends.evaluation.evaluate import aevaluate, evaluate
    from trunchray.frontends.evaluation.judges import judge_model
    from trunchray.frontends.evaluation.model_steps import model_steps
    from trunchray.frontends.evaluation.prebuilt import (
        answer_relevancy,
        correctness,
        faithfulness,
        parse_prebuilt,
        trajectory_accuracy,
    )

_LAZY = {
    "agents.python.cancellation": "CancelSignal",
    "agents.python.http_endpoint": "http_endpoint",
    "agents.python.langchain": "langchain",
    "agents.python.openai_agents": "openai_agents",
    "agents.python.pydantic_ai": "pydantic_ai",
    "agents.python.workflow": "workflow",
    "core.evaluation": "EvaluationReport",
    "core.experiment": "Experiment",
    "core.record": "RunRecord StepRecord",
    "evaluators.judges.bars": "jev system_one",
    "evaluators.judges.scripted": "ScriptedJudge",
    "evaluators.python.asking": "ask",
    "evaluators.python.comparing": "includes matches",
    "evaluators.python.schema": "fits_schema",
    "evaluators.python.trajectory": "ran_steps steps_at_most under",
    "evaluators.python.words": "avoids mentions",
    "frontends.evaluation.calibrate": "Calibration acalibrate calibrate",
    "frontends.evaluation.evaluate": "aevaluate evaluate",
    "frontends.evaluation.judges": "judge_model",
    "frontends.evaluation.model_steps": "model_steps",
    "frontends.evaluation.prebuilt": "answer_relevancy correctness faithfulness parse_prebuilt trajectory_accuracy",
}
"""By module, the names that are loaded from it when they are first used."""

_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names.split()}

__all__ = [
    "AuthoringError",
    "Calibration",
    "CancelSignal",
    "EvalFailure",
    "EvaluationReport",
    "Experiment",
    "Interrupted",
    "Problem",
    "ReleaseError",
    "RunRecord",
    "ScriptedJudge",
    "StepRecord",
    "StoreError",
    "TrunchrayError",
    "UsageError",
    "acalibrate",
    "aevaluate",
    "answer_relevancy",
    "ask",
    "avoids",
    "calibrate",
    "correctness",
    "evaluate",
    "faithfulness",
    "fits_schema",
    "http_endpoint",
    "includes",
    "jev",
    "judge_model",
    "langchain",
    "matches",
    "mentions",
    "model_steps",
    "openai_agents",
    "parse_prebuilt",
    "pydantic_ai",
    "ran_steps",
    "steps_at_most",
    "system_one",
    "trajectory_accuracy",
    "under",
    "workflow",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

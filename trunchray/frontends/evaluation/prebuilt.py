"""Four judges that are workflows of one step: faithfulness, answer relevancy, correctness, trajectory accuracy.

They call no model: a definition names the provider and model of its step, and whatever runs it asks that model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.agents.python.cancellation import CancelSignal
from trunchray.agents.python.task import Task
from trunchray.agents.python.workflow import workflow
from trunchray.core.check_result import CheckResult
from trunchray.core.json_object import read_object
from trunchray.core.names import nearest
from trunchray.core.plain import plain
from trunchray.core.record import RunRecord
from trunchray.core.share import is_share
from trunchray.errors import UsageError
from trunchray.evaluators.python.judging import state_of
from trunchray.frontends.evaluation.rubrics import PASSES_AT, RUBRICS, Part, PrebuiltId, Rubric

_CAMEL = {"answerRelevancy": "answer_relevancy", "trajectoryAccuracy": "trajectory_accuracy"}
_PARTS: tuple[tuple[Part, str], ...] = (
    ("input", "input"),
    ("output", "output"),
    ("expectedOutput", "expected_output"),
    ("steps", "steps"),
)


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """One of the four, pinned to a provider and a model."""

    id: PrebuiltId
    provider: str
    model: str

    @property
    def definition(self) -> dict[str, JsonValue]:
        """The workflow `{steps: [{id, provider, model, instructions, outputSchema}]}`.

        Who runs the step gives the model the instructions, and the payload as JSON; the output is the model's reply:
        JSON as `outputSchema` says, which `parse_prebuilt` reads.
        """
        rubric = RUBRICS[self.id]
        step: dict[str, JsonValue] = {
            "id": self.id,
            "provider": self.provider,
            "model": self.model,
            "instructions": rubric.instructions,
            "outputSchema": rubric.schema,
        }
        return {"steps": [step]}

    @property
    def failure(self) -> CheckResult:
        """The result where a run cannot be judged, because the step failed: it does not pass, and is worth nothing."""
        return CheckResult.failed(f"{self.id}: the run could not be judged")

    def payload(self, run: RunRecord | Mapping[str, Any]) -> dict[str, JsonValue] | CheckResult:
        """What the workflow is given about a run: the parts that the judge looks at, as JSON.

        `run` is what checks are given, or a mapping `{input, output, expectedOutput?, steps?}`. Where a part that is
        needed is missing, null or blank (no steps at all), or has no JSON form, it is a result that fails, without
        asking a model.
        """
        rubric = RUBRICS[self.id]
        try:
            parts = _parts(run)
        except ValueError as e:
            return CheckResult.failed(f"{self.id}: {e}")
        if missing := [part for part in rubric.needs if _is_blank(parts.get(part))]:
            return CheckResult.failed(f"{self.id}: the run has no {' and no '.join(missing)}")
        return {part: parts[part] for part in rubric.shown if not _is_blank(parts.get(part))}

    def scorer(self, invoke_step: Callable[..., Any]) -> PrebuiltCheck:
        """A check for `scorers`, which runs the workflow through `invoke_step(step, payload)` for each run."""
        return PrebuiltCheck(self, workflow(self.definition, invoke_step))


@dataclass(frozen=True, slots=True)
class PrebuiltCheck:
    """A check that runs a prebuilt judge."""

    judge: Prebuilt
    task: Task

    async def __call__(self, run: RunRecord) -> CheckResult:
        """The judge's result, or why there is none."""
        asked = self.judge.payload(run)
        if isinstance(asked, CheckResult):
            return asked
        signal = CancelSignal()
        try:
            returned = await self.task.run(asked, signal)
        finally:
            signal.abort()
        if returned.error is not None:
            return CheckResult.failed(f"{self.judge.failure.explanation}: {returned.error}")
        return parse_prebuilt(self.judge.id, returned.output)


def faithfulness(*, provider: str, model: str) -> Prebuilt:
    """Whether the output says only what the input, its context, supports.

    Answered by a category: faithful (worth 1, passes), partial (0.5) or unfaithful (0). Needs input and output.

    Raises:
        UsageError: no provider, or no model.
    """
    return _pinned("faithfulness", provider, model)


def answer_relevancy(*, provider: str, model: str) -> Prebuilt:
    """Whether the output addresses what the input asks for, right or wrong.

    Answered by a score from 0 to 1, which passes from 0.7 on. Needs input and output.

    Raises:
        UsageError: no provider, or no model.
    """
    return _pinned("answer_relevancy", provider, model)


def correctness(*, provider: str, model: str) -> Prebuilt:
    """Whether the output states what the expected output states.

    Answered by a category, as factuality is graded by autoevals: A, less but consistent (worth 0.4); B, more but
    consistent (0.6); C, the same (1, passes); D, a contradiction (0); E, a difference that does not matter (1,
    passes). Needs output and expectedOutput; is shown the input, too.

    Raises:
        UsageError: no provider, or no model.
    """
    return _pinned("correctness", provider, model)


def trajectory_accuracy(*, provider: str, model: str) -> Prebuilt:
    """Whether the steps of the run were the right ones.

    Answered by a score from 0 to 1, which passes from 0.7 on. Needs at least one step; is shown everything.

    Raises:
        UsageError: no provider, or no model.
    """
    return _pinned("trajectory_accuracy", provider, model)


def parse_prebuilt(id: str, output: object) -> CheckResult:
    """The result in what a prebuilt judge's step returned: `{category, reason?}` or `{score, reason?}`.

    `id` is the judge's, in snake_case or camelCase. `output` is that object; or JSON text of it and nothing else, be it
    in one Markdown fence; or either under `reply`. Anything else, an unknown category and a score outside of 0 to 1
    fail, and the explanation says why.

    Raises:
        UsageError: there is no such judge.
    """
    rubric = _rubric(id)
    try:
        return _result(rubric, _opened(output))
    except ValueError as e:
        return CheckResult.failed(f"{rubric.id}: not judged: {e}")


def _pinned(id: PrebuiltId, provider: str, model: str) -> Prebuilt:
    for name, value in (("provider", provider), ("model", model)):
        if not isinstance(value, str) or not value.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - callers are people's scripts
            raise UsageError(f"{id}: {name}: expected a name, got {value!r}")
    return Prebuilt(id, provider, model)


def _rubric(id: str) -> Rubric:
    for known, rubric in RUBRICS.items():
        if _CAMEL.get(id, id) == known:
            return rubric
    raise UsageError(f"there is no prebuilt judge {id!r}{nearest(id, RUBRICS)}")


def _parts(run: RunRecord | Mapping[str, Any]) -> dict[str, JsonValue]:
    if isinstance(run, RunRecord):
        return state_of(run)
    found: dict[str, JsonValue] = {}
    for part, snake in _PARTS:
        if (name := part if part in run else snake) in run:
            found[part] = plain(run[name])
    return found


def _is_blank(part: JsonValue) -> bool:
    return part is None or part == [] or (isinstance(part, str) and not part.strip())


def _opened(output: object) -> Mapping[str, Any]:
    if isinstance(output, Mapping) and "reply" in output and not output.keys() & {"category", "score"}:
        output = output["reply"]
    if isinstance(output, str):
        return read_object(output)
    if not isinstance(output, Mapping):
        raise ValueError(f"not a JSON object: {output!r:.100}")
    return output


def _result(rubric: Rubric, answer: Mapping[str, Any]) -> CheckResult:
    reason = answer.get("reason")
    if not isinstance(reason, str | None):
        raise ValueError(f"its reason is {reason!r:.100}, not a text")
    found: Any = answer.get(rubric.key)
    if rubric.credits:
        if not isinstance(found, str) or found not in rubric.credits:
            raise ValueError(f"its category is {found!r:.100}, not one of {', '.join(rubric.credits)}")
        value, passed = rubric.credits[found], found in rubric.passing
    else:
        if not is_share(found):
            raise ValueError(f"its score is {found!r:.100}, not a number from 0 to 1")
        value, passed = float(found), found >= PASSES_AT
    said = f"{found}: {reason.strip()}" if reason and reason.strip() else f"{rubric.key} {found}"
    return CheckResult(passed=passed, value=value, explanation=said)

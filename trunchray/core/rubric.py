"""A rubric and the grades of its lines: what a grader has to say, how it is read, and what is stored of it.

The stored form is that of `grading.json` as skill authors know it: `expectations` of exactly `text`, `passed` and
`evidence`, a `summary`, and `eval_feedback`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from pydantic import Field, JsonValue, model_validator

from trunchray.core.excerpt import excerpt
from trunchray.core.frozen import Frozen
from trunchray.core.json_object import read_object
from trunchray.core.well_formed import well_formed

LONGEST = 10_000
"""Characters of evidence, or of one remark, that are kept."""
MOST = 2**20
"""Characters of a reply that are read."""


class Grade(Frozen):
    """One line of a rubric, in the rubric's own words, and whether it was shown to be met."""

    text: str
    passed: bool
    evidence: str = Field(min_length=1)


class Suggestion(Frozen):
    """What a grader thinks of the rubric; `assertion` is the line it is about, None for all of it."""

    assertion: str | None = None
    reason: str


class Feedback(Frozen):
    """What a grader says about the rubric itself. It decides nothing."""

    suggestions: tuple[Suggestion, ...] = ()
    overall: str = ""


class Summary(Frozen):
    """Counted by us. `pass_rate` is a share from 0 to 1, to four places."""

    passed: int
    failed: int
    total: int
    pass_rate: float

    @classmethod
    def of(cls, grades: Sequence[Grade]) -> Self:
        """The counts of at least one grade."""
        return cls.of_lines([grade.passed for grade in grades])

    @classmethod
    def of_lines(cls, lines: Sequence[bool]) -> Self:
        """The same of at least one line, by whether it was met."""
        passed, total = sum(lines), len(lines)
        return cls(passed=passed, failed=total - passed, total=total, pass_rate=round(passed / total, 4))


class Grading(Frozen):
    """What `grading.json` holds."""

    case_id: str
    """As authored."""
    expectations: tuple[Grade, ...] = Field(min_length=1)
    summary: Summary
    eval_feedback: Feedback = Feedback()
    grader: str
    """64 hex digits of all that decides the grades but the attempt itself."""
    attempt: str
    """64 hex digits of what the attempt had left when it was graded: the grades are of that, and of nothing else."""

    @classmethod
    def of(cls, case_id: str, graded: Graded, *, grader: str, attempt: str) -> Self:
        """The summary is counted here, whatever the grader said."""
        grades, feedback = graded
        return cls(
            case_id=case_id,
            expectations=grades,
            summary=Summary.of(grades),
            eval_feedback=feedback,
            grader=grader,
            attempt=attempt,
        )

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if self.summary != Summary.of(self.expectations):
            raise ValueError("the summary is not that of the expectations")
        return self

    def to_json(self) -> dict[str, JsonValue]:
        """As stored: a suggestion has an `assertion` only where it is about one."""
        shown: dict[str, Any] = self.model_dump(mode="json", exclude={"eval_feedback"})
        said = self.eval_feedback
        feedback: dict[str, Any] = {
            "suggestions": [each.model_dump(mode="json", exclude_none=True) for each in said.suggestions],
            "overall": said.overall,
        }
        return shown | {"eval_feedback": feedback}


class Graded(NamedTuple):
    """One grade for each line of a rubric, in its order, and what the grader says of the rubric."""

    grades: tuple[Grade, ...]
    feedback: Feedback = Feedback()


SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "expectations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "evidence": {"type": "string"},
                    "passed": {"type": "boolean"},
                },
                "required": ["text", "evidence", "passed"],
                "additionalProperties": False,
            },
        },
        "eval_feedback": {
            "type": "object",
            "properties": {
                "suggestions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"assertion": {"type": ["string", "null"]}, "reason": {"type": "string"}},
                        "required": ["assertion", "reason"],
                        "additionalProperties": False,
                    },
                },
                "overall": {"type": "string"},
            },
            "required": ["suggestions", "overall"],
            "additionalProperties": False,
        },
    },
    "required": ["expectations", "eval_feedback"],
    "additionalProperties": False,
}
"""Of a reply. Evidence comes before the verdict on it, so that a model looks before it decides."""


def read_grades(rubric: Sequence[str], reply: JsonValue) -> Graded:
    """The grades in a reply, which is a JSON object or the text of one: all of them, or none.

    There is one for each line of the rubric, in its order. Its `text` is the line's, but for blanks; `passed` is true
    or false and nothing like it; `evidence` is text that is not blank. Nothing is repaired or added. Further keys are
    passed over, a summary among them; so is feedback that has another form, because it decides nothing.

    Raises:
        ValueError: something else was said; the message can be shown to who said it.
    """
    said = _opened(reply)
    listed = said.get("expectations")
    if not isinstance(listed, list):
        raise ValueError(f"`expectations` must be a list of one grade for each line of the rubric, not {_cut(listed)}")
    if len(listed) != len(rubric):
        raise ValueError(f"`expectations` has {len(listed)} grades, and the rubric {len(rubric)} lines")
    grades = [_read_grade(place, *pair) for place, pair in enumerate(zip(rubric, listed, strict=True), start=1)]
    return Graded(tuple(grades), _read_feedback(said.get("eval_feedback")))


def _opened(reply: JsonValue) -> Mapping[str, JsonValue]:
    if isinstance(reply, str):
        if len(reply) > MOST:
            raise ValueError(f"the reply has {len(reply):,} characters; at most {MOST:,} are read")
        return read_object(reply)
    if not isinstance(reply, dict):
        raise ValueError(f"not a JSON object: {_cut(reply)}")
    return reply


def _read_grade(place: int, line: str, raw: JsonValue) -> Grade:
    where = f"grade {place} of `expectations`"
    if not isinstance(raw, dict):
        raise ValueError(f"{where} is {_cut(raw)}, not an object of text, evidence and passed")
    text, passed, evidence = raw.get("text"), raw.get("passed"), raw.get("evidence")
    if not isinstance(text, str) or text.split() != line.split():
        raise ValueError(f"{where}: its text is {_cut(text)}, not that of line {place} of the rubric, {_cut(line)}")
    if not isinstance(passed, bool):
        raise ValueError(f"{where}: passed is {_cut(passed)}, neither true nor false")
    if not isinstance(evidence, str) or not evidence.strip():
        raise ValueError(f"{where}: evidence is {_cut(evidence)}; it must say what was seen")
    return Grade(text=line, passed=passed, evidence=_storable(evidence.strip()))


def _read_feedback(raw: JsonValue) -> Feedback:
    if not isinstance(raw, dict):
        return Feedback()
    listed, overall = raw.get("suggestions"), raw.get("overall")
    read = [_read_suggestion(each) for each in listed] if isinstance(listed, list) else []
    return Feedback(
        suggestions=tuple(each for each in read if each is not None),
        overall=_storable(overall) if isinstance(overall, str) else "",
    )


def _read_suggestion(raw: JsonValue) -> Suggestion | None:
    if not isinstance(raw, dict) or not isinstance(reason := raw.get("reason"), str) or not reason.strip():
        return None
    about = raw.get("assertion")
    return Suggestion(
        assertion=_storable(about) if isinstance(about, str) and about.strip() else None, reason=_storable(reason)
    )


def _storable(text: str) -> str:
    return well_formed(excerpt(text, LONGEST))


def _cut(value: object) -> str:
    return excerpt(repr(value), 120)

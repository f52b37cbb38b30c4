"""Every error trunchray raises or records.

TrunchrayError
├── UsageError            the caller asked for something impossible              exit 2
│   └── SpecError         … a file holds no Python evaluation                    exit 2
├── EvalFailure           a Python evaluation ran and does not pass its gate     exit 1
├── AuthoringError        the author's repository is not a valid benchmark       exit 2
├── ReleaseError          a stored release is missing, damaged or not a release  exit 2
├── StoreError            the store refused or lost something                    exit 3
│   └── StoreUnusable     … from the first request on: nothing ran               exit 2
├── Interrupted           the run was stopped; the same command continues it     exit 3
└── TrialError            a trial crossed a boundary and failed there;           recorded, never raised to the user
    ├── ProviderError     the model provider failed
    ├── ToolError         the process that runs a case's tools died
    ├── EvaluatorError    grading crashed, timed out or returned nonsense
    ├── SandboxError      a sandbox could not be started
    └── HarnessError      the command under test could not be run
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Boundary = Literal["provider", "tool", "evaluator", "sandbox", "harness", "store"]


class TrunchrayError(Exception):
    """Base of every error that trunchray raises on purpose."""

    exit_code: ClassVar[int] = 4


class UsageError(TrunchrayError):
    """The caller asked for something impossible; the message says what to do instead."""

    exit_code = 2


class SpecError(UsageError):
    """A file does not give the spec of a Python evaluation; `code` is a stable word for why."""

    def __init__(self, message: str, *, code: Literal["EVAL_NOT_FOUND", "EVAL_IMPORT", "EVAL_NO_SPEC"]) -> None:
        super().__init__(message)
        self.code = code


class EvalFailure(TrunchrayError):
    """A Python evaluation ran, and broke limits; the message names each of them with its cases."""

    exit_code = 1

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report
        """The `EvaluationReport`, with every result."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong in an authoring repository, and where.

    `path` is relative to the benchmark directory; `row` counts from 1 (a line, or a case) and is 0 when the problem
    concerns the whole file; `field` is a dotted path inside it, or "".
    """

    path: str
    row: int
    field: str
    message: str
    of_case: bool = False
    """`row` counts cases: of an array in a module, or as a transformer returned them."""

    def __str__(self) -> str:
        row = f": case {self.row}" if self.of_case else f":{self.row}" if self.row else ""
        place = self.path + row
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class AuthoringError(TrunchrayError):
    """An authoring repository was refused; `problems` holds every independent reason, sorted by place."""

    exit_code = 2
    shown: ClassVar[int] = 50

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        lines = [str(problem) for problem in self.problems[: self.shown]]
        if len(self.problems) > self.shown:
            lines.append(f"… and {len(self.problems) - self.shown} more problems")
        super().__init__("\n".join(lines))


class ReleaseError(TrunchrayError):
    """A stored release is missing, damaged or not a release."""

    exit_code = 2


class StoreError(TrunchrayError):
    """The store refused or lost something."""

    exit_code = 3


class StoreUnusable(StoreError):
    """A store never let us in: no such bucket, no permission, nobody there. Nothing was read or written."""

    exit_code = 2


class Interrupted(TrunchrayError):
    """The run was stopped on purpose; the same command continues it."""

    exit_code = 3


class TrialError(TrunchrayError):
    """A trial failed at a boundary; recorded as a `Failure`, never shown as a traceback.

    `type` is a stable, short slug such as "timeout" or "rate_limited"; `retryable` says whether running the same
    trial again could end differently.
    """

    boundary: ClassVar[Boundary]

    def __init__(self, message: str, *, type: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.type = type
        self.retryable = retryable
        self.trace: object = None
        """The `Trace` of what had happened before, and been paid for; None when nothing had."""


class ProviderError(TrialError):
    """The model provider failed. `retry_after` is the wait it asked for, in seconds, when it named one."""

    boundary = "provider"

    def __init__(self, message: str, *, type: str, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message, type=type, retryable=retryable)
        self.retry_after = retry_after


class ToolError(TrialError):
    """The process that runs a case's tools died."""

    boundary = "tool"


class EvaluatorError(TrialError):
    """Grading crashed, timed out or returned something that is not a verdict."""

    boundary = "evaluator"


class SandboxError(TrialError):
    """A sandbox could not be started."""

    boundary = "sandbox"


class HarnessError(TrialError):
    """The command under test could not be run."""

    boundary = "harness"


@contextmanager
def boundary(error: type[TrialError], what: str) -> Generator[None]:
    """Name the boundary that an escaping error crossed; the innermost name wins.

    Raises:
        TrialError: in place of any other exception that leaves the block.
    """
    try:
        yield
    except TrialError:
        raise
    except TimeoutError as e:
        raise error(f"{what} timed out", type="timeout", retryable=True) from e
    except Exception as e:
        raise error(f"{what}: {type(e).__name__}: {e}", type="crashed") from e

"""Files of Python evaluations as pytest collects them: a test for each check, one run for all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from trunchray.adapters.loops import own_loop
from trunchray.core.evaluation import EvaluationReport
from trunchray.errors import EvalFailure, TrunchrayError
from trunchray.evaluators.python.scorer import as_scorers
from trunchray.frontends.evaluation.evaluate import aevaluate, found_by_then
from trunchray.frontends.evaluation.loading import found, lacking
from trunchray.frontends.evaluation.pytest_sharing import shared

_SET_APART = ("_", "conftest.")


class EvalFiles:
    """The files that hold evaluations, as a plugin."""

    def __init__(self, files: Sequence[Path], *, named: Sequence[str]) -> None:
        self._files = frozenset(files)
        self._named = tuple(map(os.path.normpath, named))

    @classmethod
    def found(cls, config: pytest.Config, patterns: Sequence[str]) -> EvalFiles:
        """The files of these patterns, from the current directory on or else from pytest's root directory.

        A folder stands for the Python files in it.

        Raises:
            pytest.UsageError: a pattern matches no file.
        """
        return cls([file for pattern in patterns for file in _matching(config, pattern)], named=patterns)

    def add_to(self, config: pytest.Config) -> None:
        """Have pytest look at the files, unless its arguments choose some of them."""
        chosen = [Path(config.invocation_params.dir, arg.partition("::")[0]) for arg in config.args]
        seen = {file for file in self._files if any(place in (file, *file.parents) for place in chosen)}
        if not (seen and config.args_source is pytest.Config.ArgsSource.ARGS):
            config.args += [str(file) for file in sorted(self._files - seen)]

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if file_path not in self._files:
            return None
        named = str(file_path).endswith(self._named)
        return EvalFile.from_parent(parent, path=file_path, named=named)


class EvalFile(pytest.File):
    """One file, with its evaluation. Where it was not `named`, but found in a folder, it may have none."""

    def __init__(self, *, named: bool, **more: Any) -> None:
        super().__init__(**more)
        self._named = named

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each check, in the order of the spec."""
        stack = ExitStack()
        runner = stack.enter_context(own_loop())
        self.config.add_cleanup(stack.close)
        try:
            exported = found(self.path)
            if exported is None:
                self._pass_over(f"{str(self.path)!r} {lacking({})}")
                return
            spec = runner.run(exported.spec())
            names = list(as_scorers(spec.get("scorers")))
        except TrunchrayError as e:
            raise self.CollectError(str(e)) from e
        evaluation = Evaluation(self.config, self.path, spec, runner)
        for name in names:
            yield CheckItem.from_parent(self, name=name, evaluation=evaluation)

    def _pass_over(self, why: str) -> None:
        if self._named:
            raise self.CollectError(why)
        self.warn(pytest.PytestCollectionWarning(f"passed over: {why}"))


class Evaluation:
    """Runs once, when the first of its checks is asked for; processes of one test run share it."""

    def __init__(self, config: pytest.Config, path: Path, spec: dict[str, Any], runner: asyncio.Runner) -> None:
        self._config, self._path, self._spec, self._runner = config, path, spec, runner
        self._outcome: EvaluationReport | TrunchrayError | None = None

    def report(self) -> EvaluationReport:
        """What it found, whether its gate is passed or not.

        Raises:
            TrunchrayError: it did not run; the same one for every check.
        """
        if self._outcome is None:
            self._outcome = shared(self._config, self._path, self._run)
        if isinstance(self._outcome, TrunchrayError):
            raise self._outcome
        return self._outcome

    def _run(self) -> EvaluationReport | TrunchrayError:
        spec: dict[str, Any] = self._spec | {"quiet": True}
        try:
            return self._runner.run(aevaluate(**spec))
        except EvalFailure as e:
            return e.report
        except TrunchrayError as e:
            return e
        except KeyboardInterrupt as e:
            pytest.exit(_interrupted(e), returncode=pytest.ExitCode.INTERRUPTED)


def _interrupted(error: KeyboardInterrupt) -> str:
    try:
        report = found_by_then(error)
    except EvalFailure as e:
        report = e.report
    except TrunchrayError as e:
        return str(e)
    return f"interrupted, after all cases of {report.name!r} had been run; {report.run} has what came of them"


class CheckItem(pytest.Item):
    """One check of an evaluation: it fails when a limit of it is broken."""

    def __init__(self, *, evaluation: Evaluation, **more: Any) -> None:
        super().__init__(**more)
        self._evaluation = evaluation

    def runtest(self) -> None:
        report = self._evaluation.report()
        if report.scorers[self.name].broken:
            pytest.fail(report.explained(self.name), pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was found; of an evaluation that did not run, why not. Only bugs have a traceback."""
        if isinstance(excinfo.value, pytest.fail.Exception | TrunchrayError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


def _matching(config: pytest.Config, pattern: str) -> list[Path]:
    folders = dict.fromkeys((config.invocation_params.dir, config.rootpath))
    for folder in folders:
        inside = f"{pattern}/*.py" if pattern and (folder / pattern).is_dir() else pattern
        names = sorted(glob(inside, root_dir=folder, recursive=True))  # noqa: PTH207 - patterns may be absolute
        files = [Path(os.path.normpath(folder / name)) for name in names]  # as pytest names them: without `..`
        if found := [file for file in files if file.is_file() and not file.name.startswith(_SET_APART)]:
            return found
    raise pytest.UsageError(f"--trunchray-evals: no file matches {pattern!r} in {', '.join(map(str, folders))}")

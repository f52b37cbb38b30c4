"""Exporting what transformers make: `trunchray transform` and `trunchray transform-batch`.

The text of an export is made by JavaScript and never written again by Python. Everything is checked before anything
is written.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from trunchray.adapters.sandbox.inspector import Inspector
from trunchray.adapters.scratch import scratch
from trunchray.core.digest import sha256
from trunchray.errors import AuthoringError, Problem
from trunchray.frontends.benchmark.batch import ExportJob, read_batch
from trunchray.frontends.benchmark.cases import CASE, same_ids
from trunchray.frontends.benchmark.dependencies.install import install
from trunchray.frontends.benchmark.paths import bad_syntax
from trunchray.frontends.benchmark.pending import Pending
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.site import Site, repository_root
from trunchray.frontends.benchmark.staging import Stage, staged
from trunchray.frontends.benchmark.transformers import MadeCases, TransformedCases, Transformers


@dataclass(frozen=True)
class Export:
    """What became of a job. Paths are as the job has them; `sha256` is of the output."""

    job: ExportJob
    transformer_name: str
    case_count: int
    sha256: str


def export(job: ExportJob, base: Path) -> Export:
    """Run one job whose paths are relative to `base`, and write its output and receipt.

    Runs an event loop of its own, as `export_batch` does.

    Raises:
        AuthoringError: the job, its transformer or a case is refused; nothing is written.
        UsageError: the output cannot be written.
    """
    with scratch() as folder:
        pending = Pending(folder)
        exports = asyncio.run(_run([(Position("transform"), job)], base.resolve(), pending))
        pending.write()
    return exports[0]


def export_batch(manifest: Path) -> list[Export]:
    """Run every job of a manifest; write all outputs and receipts, and `<manifest>.report.json`.

    Raises:
        AuthoringError: the manifest, a transformer or a case is refused; nothing is written.
        UsageError: there is no such manifest, or something cannot be written.
    """
    jobs = [(Position(manifest.name).at(f"jobs[{index}]"), job) for index, job in enumerate(read_batch(manifest))]
    base = manifest.parent.resolve()
    _refuse([problem for place, job in jobs for problem in _unsafe(job, place, base)])
    with scratch() as folder:
        pending = Pending(folder)
        exports = asyncio.run(_run(jobs, base, pending, manifest.name))
        pending.add(base / f"{manifest.name}.report.json", _report(manifest.name, exports))
        pending.write()
    return exports


@dataclass(frozen=True)
class _Repository:
    """A staged repository; `site` is the original. The paths of jobs are relative to `base`."""

    stage: Stage
    site: Site
    base: Path

    def inside(self, path: str) -> str:
        """A job's path, relative to the benchmark directory."""
        return Path(os.path.relpath(self.base / path, self.site.directory)).as_posix()

    def seen(self, path: str) -> str:
        """A path relative to the benchmark directory, as a job would write it."""
        return Path(os.path.relpath(self.site.directory / path, self.base)).as_posix()

    def made(self, made: MadeCases) -> MadeCases:
        """The same cases with the paths that jobs have; those of sources were relative to the root."""
        by = made.made_by
        way = os.path.relpath(self.site.root, self.site.directory)
        sources = {
            name: source.model_copy(update={"path": self.seen(f"{way}/{source.path}")})
            for name, source in by.sources.items()
        }
        return replace(made, made_by=by.model_copy(update={"path": self.seen(by.path), "sources": sources}))


async def _run(jobs: Sequence[tuple[Position, ExportJob]], base: Path, pending: Pending, *more: str) -> list[Export]:
    """All jobs, one after the other; `more` are further files that no output may overwrite."""
    _refuse(_overwritten(jobs, base, more))
    found: list[Problem] = []
    exports: list[Export] = []
    with ExitStack() as stages:
        repositories: dict[Site, _Repository] = {}
        async with Inspector() as inspector:
            for place, job in jobs:
                where = _site(job, base)
                if where not in repositories:
                    stage = stages.enter_context(staged(where))
                    install(stage)
                    repositories[where] = _Repository(stage, where, base)
                made = await _transformed(repositories[where], place, job, found)
                if made and not found:
                    content = made.lines if job.format == "jsonl" else await inspector.indented(made.lines)
                    exports.append(Export(job, made.made_by.name, made.made_by.case_count, sha256(content)))
                    pending.add(base / job.output, content)
                    pending.add(base / job.receipt, _receipt(exports[-1], made))
    _refuse(found)
    return exports


def _refuse(found: Sequence[Problem]) -> None:
    if found:
        raise AuthoringError(found)


def _site(job: ExportJob, base: Path) -> Site:
    """The repository around the transformer; where there is none, the folder that holds it and all sources.

    Its benchmark directory is the folder around the transformer that has the packages.
    """
    inputs = [base / path for path in (job.transformer, *job.sources.values()) if not bad_syntax(path)]
    folders = [Path(os.path.normpath(path.parent)).resolve() for path in inputs] or [base]
    root = repository_root(folders[0])
    if not any((root / marker).exists() for marker in (".git", "package.json")):
        root = Path(os.path.commonpath(folders))
    around = [folder for folder in (folders[0], *folders[0].parents) if folder.is_relative_to(root)]
    return Site(next((folder for folder in around if (folder / "package.json").is_file()), root), root, None)


async def _transformed(
    repository: _Repository, place: Position, job: ExportJob, found: list[Problem]
) -> MadeCases | None:
    """The cases of a job, with paths as jobs have them, after every check."""
    wrong: list[Problem] = []
    authored = TransformedCases(transformer=job.transformer, sources=job.sources)
    made = await Transformers(repository.stage).cases(place, repository.inside, authored, wrong)
    if made:
        wrong += _bad_cases(made)
    found += [
        problem if problem.path == place.path else replace(problem, path=repository.seen(problem.path))
        for problem in wrong
    ]
    if made is None:
        return None
    made = repository.made(made)
    found += _unexpected(job, made, place)
    return made


def _bad_cases(made: MadeCases) -> list[Problem]:
    found: list[Problem] = []
    read = [(place, case.id) for place, row in made.rows() if (case := CASE.read(row, place, found))]
    return found + same_ids(read)


def _unexpected(job: ExportJob, made: MadeCases, place: Position) -> list[Problem]:
    found: list[Problem] = []
    count = made.made_by.case_count
    if job.expected_case_count is not None and job.expected_case_count != count:
        message = f"is {job.expected_case_count:,}, but the number of cases is {count:,}"
        found.append(place.at("expectedCaseCount").problem(message))
    for name, expected in job.expected_hashes(place, found).items():
        actual = made.made_by.sources[name].sha256
        if actual != expected:
            field = place.at("expectedSourceSha256").at(name)
            found.append(field.problem(f"is {expected}, but {shown(job.sources[name])} has {actual}"))
    return found


def _unsafe(job: ExportJob, place: Position, base: Path) -> list[Problem]:
    """Why a manifest, which may be a stranger's, cannot name this output."""
    complaint = bad_syntax(job.output)
    if not complaint and not (base / job.output).parent.resolve().is_relative_to(repository_root(base)):
        complaint = "leads out of the repository"
    return [place.at("output").problem(f"{shown(job.output)} {complaint}")] if complaint else []


def _overwritten(jobs: Sequence[tuple[Position, ExportJob]], base: Path, more: Sequence[str]) -> list[Problem]:
    """Outputs in the place of something that is read or written as well."""
    files = {(base / path).resolve(): "the manifest" for path in more}
    files |= {(base / f"{path}.report.json").resolve(): "the report" for path in more}
    for _, job in jobs:
        inputs = [job.transformer, *job.sources.values()]
        files |= {(base / path).resolve(): "an input" for path in inputs if "\0" not in path}
    found: list[Problem] = []
    for place, job in jobs:
        for path in (job.output, job.receipt):
            taken = files.setdefault((base / path).resolve(), f"an output of {job.id!r}")
            if taken != f"an output of {job.id!r}":
                found.append(place.at("output").problem(f"{shown(path)} would overwrite {taken}; choose another"))
        if (base / job.output).is_dir():
            found.append(place.at("output").problem(f"{shown(job.output)} is a folder; give a file"))
    return found


def _receipt(done: Export, made: MadeCases) -> bytes:
    by = made.made_by
    sources: dict[str, JsonValue] = {
        name: {"path": source.path, "sha256": source.sha256, "bytes": source.bytes}
        for name, source in sorted(by.sources.items())
    }
    return _json(
        {
            "protocolVersion": 1,
            "transformer": {"name": by.name, "path": by.path, "sha256": by.sha256},
            "sources": sources,
            "caseCount": by.case_count,
            "output": {"path": done.job.output, "format": done.job.format, "sha256": done.sha256},
        }
    )


def _report(manifest: str, exports: Sequence[Export]) -> bytes:
    results: list[JsonValue] = [
        {
            "id": done.job.id,
            "transformerName": done.transformer_name,
            "caseCount": done.case_count,
            "output": done.job.output,
            "receipt": done.job.receipt,
        }
        for done in exports
    ]
    return _json(
        {
            "protocolVersion": 1,
            "manifest": manifest,
            "jobCount": len(exports),
            "caseCount": sum(done.case_count for done in exports),
            "results": results,
        }
    )


def _json(value: JsonValue) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()

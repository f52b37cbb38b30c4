"""An authoring repository → a release. The main flow is `_compile`; what it calls is named after the step.

Problems that do not depend on each other are collected and raised together. Nothing is written on failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from trunchray.adapters.releases import CaseTable, StoredRelease, open_release, write_release
from trunchray.adapters.sandbox.deno import deno_version
from trunchray.adapters.sandbox.esbuild import ESBUILD_VERSION
from trunchray.adapters.sandbox.inspector import Inspector
from trunchray.adapters.store import Store
from trunchray.core.digest import sha256
from trunchray.core.release import (
    Compiler,
    Release,
    ReleaseCases,
    ReleaseEval,
    ReleaseEvaluator,
    ReleaseTransformer,
    sealed,
)
from trunchray.errors import AuthoringError, Problem
from trunchray.frontends.benchmark.advice import warnings
from trunchray.frontends.benchmark.bundles import bundle_all
from trunchray.frontends.benchmark.cases import check_cases, too_many
from trunchray.frontends.benchmark.checkout import opened
from trunchray.frontends.benchmark.config import CONFIG, AuthoredConfig, config_without_file
from trunchray.frontends.benchmark.dependencies.install import Installed, install
from trunchray.frontends.benchmark.discovery import entrypoints, tool_modules
from trunchray.frontends.benchmark.graders import read_graders
from trunchray.frontends.benchmark.modules import EvalModule, Reader, read_export, read_module
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.site import Site
from trunchray.frontends.benchmark.source import source_of
from trunchray.frontends.benchmark.staging import Stage, staged
from trunchray.frontends.benchmark.tools import Tools, read_tools
from trunchray.frontends.benchmark.transformers import Transformers


@dataclass(frozen=True)
class Compiled:
    """A release in memory. `modules` maps the hash of each module to its code."""

    release: Release
    # Kept out of its repr, which asyncio writes twice while it ends (of the result of the main task).
    cases: bytes = field(repr=False)
    modules: dict[str, bytes] = field(repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but probably not meant, one line each."""
        return self.release.warnings


def compile_benchmark(path: Path | str, *, config: str | None = None) -> Compiled:
    """Compile the benchmark at `path`, a directory, a config file or a git address; `config` names one in a directory.

    Runs an event loop of its own, so it cannot be called from inside one.

    Raises:
        UsageError: there is no benchmark at `path`.
        AuthoringError: the benchmark is refused.
    """
    with opened(path, config) as site:
        return asyncio.run(_compile(site))


def compile_to(path: Path | str, out: str, *, config: str | None = None) -> StoredRelease:
    """Compile as `compile_benchmark` does, and store the release in its own folder below `out` (a path or URI).

    Raises:
        ReleaseError: another release has that folder.
    """
    compiled = compile_benchmark(path, config=config)
    store = write_release(Store(out), compiled.release, compiled.cases, compiled.modules)
    return open_release(store.uri)


async def _compile(site: Site) -> Compiled:
    found: list[Problem] = []
    with staged(site) as stage:
        packages = install(stage)
        async with Inspector() as inspector:
            config = await _read_config(inspector, stage, site)
            modules, graders, tools = await _read_modules(inspector, stage, config, Position(site.config or ""), found)
            if found:
                raise AuthoringError(found)
            chunks = [await _emit(inspector, module) for module in modules]
    cases = b"".join(chunks)
    evaluators = [grader for grader, _ in graders]
    manifest = _manifest(site, config, modules, evaluators=evaluators, tools=tools, cases=cases, packages=packages)
    return Compiled(manifest, cases, {grader.module: code for grader, code in graders} | tools.modules)


async def _read_config(inspector: Inspector, stage: Stage, site: Site) -> AuthoredConfig:
    """The config; nothing can be said about the rest while it is wrong.

    Raises:
        AuthoringError: it is wrong.
    """
    if site.config is None:
        return config_without_file(site.directory.name)
    found: list[Problem] = []
    bundles = bundle_all(stage, [site.config], found)
    if code := bundles.get(site.config):
        exported = await read_export(inspector, site.config, code.code, found)
        config = exported and CONFIG.read(exported.value, Position(site.config), found)
        if config is not None:
            return config
    raise AuthoringError(found)


async def _read_modules(
    inspector: Inspector, stage: Stage, config: AuthoredConfig, place: Position, found: list[Problem]
) -> tuple[list[EvalModule], list[tuple[ReleaseEvaluator, bytes]], Tools]:
    """All eval modules, custom evaluators and tools, after every check; `found` holds what is wrong with them."""
    entries = entrypoints(stage, config, place, found)
    tools = await read_tools(stage, tool_modules(stage, config, place, found), found)
    bundles = bundle_all(stage, entries, found)
    reader = Reader(inspector, stage, Transformers(stage))
    modules: list[EvalModule] = []
    for path, bundle in bundles.items():
        module = await read_module(reader, path, bundle.code, found)
        modules += [module] if module else []
    graders = await read_graders(inspector, stage, modules, bundles, found)
    found += _same_ids(modules)
    found += check_cases([case for module in modules for case in module.cases], tools.names)
    found += too_many(sum(module.size for module in modules))
    return modules, graders, tools


def _same_ids(modules: Sequence[EvalModule]) -> list[Problem]:
    first: dict[str, str] = {}
    return [
        Position(module.path, 0, "id").problem(
            f"eval id {module.authored.id!r} is already used in {earlier}; give each eval its own"
        )
        for module in modules
        if (earlier := first.setdefault(module.authored.id, module.path)) != module.path
    ]


def _transformers(modules: Sequence[EvalModule]) -> list[ReleaseTransformer]:
    """Those that made cases, in release order, each with the same sources once."""
    made: list[ReleaseTransformer] = []
    for module in modules:
        transformer = module.data.made_by
        if transformer is not None and transformer not in made:
            made.append(transformer)
    return made


async def _emit(inspector: Inspector, module: EvalModule) -> bytes:
    """The compiled cases of an eval, one a line. A declarative evaluator stays as it was written."""
    custom = module.shared.check.model_dump(mode="json") if module.shared and module.shared.key else None
    data = module.data
    return await inspector.emit(module.handle, data.handle, path=module.path, rows_path=data.path, evaluate=custom)


def _manifest(
    site: Site,
    config: AuthoredConfig,
    modules: Sequence[EvalModule],
    *,
    evaluators: Sequence[ReleaseEvaluator],
    tools: Tools,
    cases: bytes,
    packages: Installed,
) -> Release:
    count = sum(1 for _ in CaseTable(cases))  # parses every line: what the sandbox wrote is what workers can read
    evals = [
        ReleaseEval(
            id=module.authored.id,
            title=module.authored.title or module.authored.id,
            cases=len(module.cases),
            path=module.path,
        )
        for module in modules
    ]
    release = Release(
        title=config.title,
        version=config.version,
        description=config.description or None,
        license=config.license or None,
        homepage=config.homepage or None,
        tags=tuple(config.tags),
        limits=config.limits,
        evals=tuple(evals),
        tools=tools.tools,
        evaluators=tuple(evaluators),
        transformers=tuple(_transformers(modules)),
        cases=ReleaseCases(count=count, sha256=sha256(cases), bytes=len(cases)),
        dependencies=packages.dependencies,
        source=source_of(site),
        compiler=Compiler(trunchray=version("trunchray"), deno=deno_version(), esbuild=ESBUILD_VERSION),
        warnings=(*packages.warnings, *(line for each in modules for line in warnings(each.path, each.cases))),
    )
    return sealed(release)

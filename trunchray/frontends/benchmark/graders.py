"""The modules of custom evaluators: bundled, and known to hold an `evaluate` function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trunchray.adapters.sandbox.esbuild import Bundle
from trunchray.adapters.sandbox.inspector import Inspector
from trunchray.core.release import ReleaseEvaluator
from trunchray.errors import Problem
from trunchray.frontends.benchmark.bundles import bundle_all
from trunchray.frontends.benchmark.modules import EvalModule
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.staging import Stage


async def read_graders(
    inspector: Inspector,
    stage: Stage,
    modules: Sequence[EvalModule],
    bundles: Mapping[str, Bundle],
    found: list[Problem],
) -> list[tuple[ReleaseEvaluator, bytes]]:
    """The custom evaluators of the release, by key, each with the code of its module.

    `bundles` holds what is bundled already; what is wrong with the others goes to `found`.
    """
    users = {module.shared.key: (module, module.shared) for module in modules if module.shared and module.shared.key}
    wanted = sorted({shared.module for _, shared in users.values()} - bundles.keys())
    bundled = {**bundles, **bundle_all(stage, wanted, found)}
    graders: list[tuple[ReleaseEvaluator, bytes]] = []
    for key, (module, shared) in sorted(users.items()):
        code = bundled.get(shared.module)
        if code is None:
            continue
        if complaint := await inspector.is_evaluator(code.code, shared.export):
            place = Position(module.path, 0, "evaluate")
            found.append(place.problem(f"export {shared.export!r} of {shared.module!r}: {complaint}"))
        graders.append((ReleaseEvaluator(key=key, module=code.sha256, export=shared.export), code.code))
    return graders

"""What would be frozen, for authors to look at before it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import JsonValue

from trunchray.adapters.releases import CaseTable
from trunchray.core.case import Case
from trunchray.frontends.benchmark.compiler import Compiled


def preview(compiled: Compiled) -> dict[str, JsonValue]:
    """A compiled benchmark as one JSON value: evals, tools, evaluators, transformers, warnings and the digest."""
    release = compiled.release
    graded = kinds(CaseTable(compiled.cases))
    return {
        "title": release.title,
        "version": release.version,
        "digest": release.digest,
        "cases": release.cases.count,
        "evals": [
            {
                "id": each.id,
                "title": each.title,
                "path": each.path,
                "cases": each.cases,
                "gradedBy": {**graded[each.id]},
            }
            for each in release.evals
        ],
        "tools": [
            each.model_dump(mode="json", include={"name", "description", "input_schema"}) for each in release.tools
        ],
        "evaluators": [each.model_dump(mode="json") for each in release.evaluators],
        "transformers": [each.model_dump(mode="json") for each in release.transformers],
        "dependencies": release.dependencies.model_dump(mode="json", exclude_none=True),
        "limits": release.limits.model_dump(mode="json"),
        "warnings": list(release.warnings),
    }


def kinds(cases: Iterable[Case]) -> dict[str, Counter[str]]:
    """How many checks of each kind an eval's cases have, by eval id."""
    found: dict[str, Counter[str]] = {}
    for case in cases:
        found.setdefault(case.eval_id, Counter()).update(check.kind for check in case.checks.values())
    return found

"""A dataset as a release: the same cases and checks always give the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.store import Store
from trunchray.core.case import Case, Origin
from trunchray.core.checks import Python
from trunchray.core.release import slug
from trunchray.frontends.case_release import case_id, store_cases
from trunchray.frontends.evaluation.dataset import DataCase

SEMANTICS = {"python": "python/1"}
"""The rules by which the checks of such a release are read."""


def compile_cases(
    name: str, source: str, cases: Sequence[DataCase], checks: Mapping[str, str], root: Store
) -> StoredRelease:
    """Store the release of an evaluation in `root`. `checks` has the digest of each scorer, by name.

    Of the `source` of the cases only the file's name is kept: the way to it differs with where a call is made.

    Raises:
        StoreError: it cannot be stored.
    """
    place = source.rpartition("/")[2]
    compiled = [_case(case, slug(name), place, number, checks) for number, case in enumerate(cases, 1)]
    return store_cases(name, place, compiled, root, semantics=SEMANTICS)


def _case(case: DataCase, eval_id: str, source: str, number: int, checks: Mapping[str, str]) -> Case:
    data: dict[str, JsonValue] = {"must": list(case.must)}
    if case.expected:
        data["expectedOutput"] = case.expected[0]
    return Case(
        id=case_id(case.name),
        eval_id=eval_id,
        title=case.name,
        input=case.case_input,
        data=data,
        checks={name: Python(digest=digest) for name, digest in checks.items() if name not in case.skip},
        source=Origin(path=source, row=number),
    )

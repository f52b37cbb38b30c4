"""A dataset as a release: the same cases and checks always give the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from pydantic import JsonValue

from trunchray.adapters.releases import StoredRelease, write_release
from trunchray.adapters.store import Store
from trunchray.core.case import Case, Origin
from trunchray.core.checks import Python
from trunchray.core.digest import sha256
from trunchray.core.release import Compiler, Release, ReleaseCases, ReleaseEval, sealed, slug
from trunchray.frontends.evaluation.dataset import DataCase

SEMANTICS = {"python": "python/1"}
"""The rules by which the checks of such a release are read."""


def case_id(name: str) -> str:
    """What the engine calls the case of a name: something of the name, and something of its hash."""
    return f"{slug(name)}-{sha256(name.encode(errors='surrogatepass'))[:12]}"


def compile_cases(
    name: str, source: str, cases: Sequence[DataCase], checks: Mapping[str, str], root: Store
) -> StoredRelease:
    """Store the release of an evaluation in `root`. `checks` has the digest of each scorer, by name.

    Of the `source` of the cases only the file's name is kept: the way to it differs with where a call is made.

    Raises:
        StoreError: it cannot be stored.
    """
    eval_id, source = slug(name), source.rpartition("/")[2]
    lines = [_case(case, eval_id, source, number, checks) for number, case in enumerate(cases, 1)]
    content = b"".join(line.model_dump_json(by_alias=True).encode() + b"\n" for line in lines)
    release = sealed(
        Release(
            title=name,
            version="1",
            evals=(ReleaseEval(id=eval_id, title=name, cases=len(cases), path=source),),
            cases=ReleaseCases(count=len(cases), sha256=sha256(content), bytes=len(content)),
            semantics=SEMANTICS,
            compiler=Compiler(trunchray=version("trunchray"), deno="", esbuild=""),
        )
    )
    return StoredRelease(release, write_release(root, release, content, {}))


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

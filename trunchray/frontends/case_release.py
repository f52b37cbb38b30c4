"""Cases that were not compiled from a benchmark, as a release: the same ones always give the same release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from trunchray.adapters.releases import StoredRelease, write_release
from trunchray.adapters.store import Store
from trunchray.core.case import Case
from trunchray.core.digest import sha256
from trunchray.core.release import Compiler, Release, ReleaseCases, ReleaseEval, sealed, slug


def case_id(name: str) -> str:
    """What the engine calls the case of a name: something of the name, and something of its hash."""
    return f"{slug(name)}-{sha256(name.encode(errors='surrogatepass'))[:12]}"


def store_cases(
    title: str, source: str, cases: Sequence[Case], root: Store, *, semantics: Mapping[str, str]
) -> StoredRelease:
    """Store a release with one eval in `root`. The cases, at least one, are all of the eval `slug(title)`.

    `semantics` are the rules by which their checks are read.

    Raises:
        StoreError: it cannot be stored.
    """
    content = b"".join(case.model_dump_json(by_alias=True).encode() + b"\n" for case in cases)
    release = sealed(
        Release(
            title=title,
            version="1",
            evals=(ReleaseEval(id=slug(title), title=title, cases=len(cases), path=source),),
            cases=ReleaseCases(count=len(cases), sha256=sha256(content), bytes=len(content)),
            semantics=dict(semantics),
            compiler=Compiler(trunchray=version("trunchray"), deno="", esbuild=""),
        )
    )
    return StoredRelease(release, write_release(root, release, content, {}))

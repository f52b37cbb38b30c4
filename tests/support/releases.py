"""Small releases for tests of the engine, made without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import to_json

from trunchray.adapters.releases import StoredRelease, open_release, write_release
from trunchray.adapters.store import Store
from trunchray.core.digest import sha256
from trunchray.core.release import Compiler, Release, ReleaseCases, ReleaseEval, ReleaseEvaluator, sealed


def make_release(
    root: str | Path,
    cases: int,
    *,
    check: Callable[[int], JsonValue] = lambda _: {"kind": "non_empty"},
    evaluator: bytes | None = None,
    title: str = "Test",
    prompt: Callable[[int], str] = lambda number: f"prompt {number}",
) -> StoredRelease:
    """A release of `cases` one-eval cases c0, c1, … with prompts "prompt 0", …; `evaluator` is the code of a module
    whose default export grades the cases whose check is custom `e#default`."""
    lines = [
        {
            "id": f"c{number}",
            "evalId": "even" if number % 2 == 0 else "odd",
            "title": f"case {number}",
            "description": "",
            "input": {"prompt": prompt(number), "systemPrompt": "Be brief.", "tools": []},
            "data": {"number": number},
            "checks": {"evaluate": check(number)},
            "source": {"path": "evals/x.ts", "row": number + 1},
        }
        for number in range(cases)
    ]
    content = b"".join(to_json(line) + b"\n" for line in lines)
    evals = [ReleaseEval(id="even", title="Even", cases=(cases + 1) // 2, path="evals/even.ts")]
    if cases > 1:
        evals.append(ReleaseEval(id="odd", title="Odd", cases=cases // 2, path="evals/odd.ts"))
    modules = {sha256(evaluator): evaluator} if evaluator else {}
    release = Release(
        title=title,
        version="1.0.0",
        evals=tuple(evals),
        cases=ReleaseCases(count=cases, sha256=sha256(content), bytes=len(content)),
        evaluators=tuple(ReleaseEvaluator(key="e#default", module=sha, export="default") for sha in modules),
        compiler=Compiler(trunchray="0", deno="0", esbuild="0"),
    )
    return open_release(write_release(Store(str(root)), sealed(release), content, modules).uri)

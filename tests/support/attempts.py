"""Attempts of skill evals, as they are kept, and what a grader says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from trunchray.core.attempt import AttemptTiming
from trunchray.core.case import Case, CaseInput, Origin
from trunchray.core.checks import Check, RubricLine
from trunchray.core.digest import sha256
from trunchray.core.trial import Step, Trace

T = TypeVar("T")

LINES = ("brief.md names the segment", "brief.md has between 250 and 1500 words")
MEMO = b"Mid-market insurers lose days to triage.\n"


def attempt_folder(folder: Path, **files: str | bytes) -> Path:
    """The folder of an attempt; `files` are further ones of its workspace, `__` in a name standing for `/`."""
    workspace = folder / "cwd"
    made: dict[str, str | bytes] = {"brief.md": "# InsuLens\nFor mid-market insurers.\n", "memo.md": MEMO}
    for name, content in (made | {name.replace("__", "/"): content for name, content in files.items()}).items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "prompt.txt").write_text("Run headless. Write the brief.")
    (folder / "transcript.jsonl").write_text('{"type": "assistant", "message": {"content": "Done."}}\n')
    (folder / "stderr.txt").write_text("")
    timing = AttemptTiming(
        case_id="create-1",
        config="skill",
        status="ok",
        captured_at="2026-01-01T00:00:00Z",
        truncated=("transcript.jsonl", "cwd/huge.bin"),
        left_out=("out/socket: a socket",),
    )
    (folder / "timing.json").write_text(timing.model_dump_json())
    return folder


def attempt_case(checks: dict[str, Check] | None = None) -> Case:
    """A case with a rubric of two lines and one fixture."""
    lines: dict[str, Check] = {f"rubric-{number}": RubricLine(text=line) for number, line in enumerate(LINES, start=1)}
    return Case(
        id="create-1-abc",
        eval_id="briefs",
        title="create-1",
        input=CaseInput(prompt="Write the brief."),
        data={"files": [{"path": "memo.md", "sha256": sha256(MEMO)}], "rubric": [*LINES]},
        checks=lines if checks is None else checks,
        source=Origin(path="cases.json"),
    )


def attempt_trace(
    folder: Path | str, *, status: str = "ok", loaded: bool | None = None, path: str | None = "skill/create-1"
) -> Trace:
    """What its agent left."""
    seen: dict[str, Any] = {"folder": str(folder), "path": path, "status": status, "loaded": loaded}
    return Trace(output="brief.md is written.", steps=(Step("attempt", "skill", output=seen),))


def elsewhere(work: Callable[[], T]) -> T:
    """What comes of it in another thread, where it may run an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def grades(*passed: bool, **more: Any) -> dict[str, Any]:
    """A reply that grades the lines, with the evidence "seen 1" and so on."""
    listed = [
        {"text": line, "passed": met, "evidence": f"seen {number}"}
        for number, (line, met) in enumerate(zip(LINES, passed, strict=False), start=1)
    ]
    return {"expectations": listed, **more}


def said(*passed: bool, **more: Any) -> str:
    """The same as text."""
    return json.dumps(grades(*passed, **more))


def parts(prompt: str) -> dict[str, str]:
    """What stands between marks in a grader's prompt, by its name."""
    mark = re.findall(r"\[([0-9a-f]{16})", prompt)[0]
    found = re.findall(rf"^\[{mark} (?!end\])([^\n]*)\]\n(.*?)\n\[{mark} end\]$", prompt, re.DOTALL | re.MULTILINE)
    return dict(found)


def outside(prompt: str) -> str:
    """What is left of a prompt without all that stands between marks."""
    mark = re.findall(r"\[([0-9a-f]{16})", prompt)[0]
    return re.sub(rf"^\[{mark} [^\n]*\]\n.*?\n\[{mark} end\]$", "", prompt, flags=re.DOTALL | re.MULTILINE)

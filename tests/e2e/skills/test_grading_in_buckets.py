"""Attempts that are kept in a bucket get their grades there."""

from __future__ import annotations

import json
from pathlib import Path

from support.attempts import attempt_case, attempt_folder, attempt_trace, said
from support.s3 import Bucket
from trunchray.adapters.store import Store
from trunchray.core.agent import Mock, ModelAgent, ScriptedReply
from trunchray.core.grader_spec import ModelGrader
from trunchray.evaluators.attempts.build import build_grader


async def test_an_attempt_in_a_bucket(s3: Bucket, tmp_path: Path) -> None:
    """It is looked at through a copy, its grading.json is the only thing that is new, and is found the next time."""
    folder, store = attempt_folder(tmp_path / "a", **{"out/ü [1].md": "x"}), Store(f"{s3.uri}/skill/create-1")
    for path in Store(str(folder)).find():
        store.put(path, folder / path)
    before = store.find()
    mock = Mock(script=(ScriptedReply(text="Sorry?"), ScriptedReply(text=said(True, False))))
    grader = build_grader(ModelGrader(model=ModelAgent(name="g", model="mock/script", mock=mock)))
    trace = attempt_trace(store.uri)
    verdict = await grader.grade(attempt_case(), trace)
    assert verdict.score == 0.5
    assert set(store.find()) - set(before) == {"grading.json"}
    assert json.loads(store.read("grading.json"))["summary"]["total"] == 2
    assert await grader.grade(attempt_case(), trace) == verdict

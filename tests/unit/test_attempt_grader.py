"""Grading attempts of skill evals: what is graded, what is kept of it, and that no error becomes a verdict."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from support.attempts import LINES, attempt_case, attempt_folder, attempt_trace, elsewhere, grades, said
from trunchray.adapters.store import Store
from trunchray.core.agent import Mock, ModelAgent, ScriptedReply
from trunchray.core.checks import Completed, NonEmpty, RubricLine, Triggered
from trunchray.core.grader_spec import ModelGrader
from trunchray.core.trial import NOT_GRADED, Step, Trace
from trunchray.errors import EvaluatorError, ProviderError, UsageError
from trunchray.evaluators.attempts.base import Attempt, GraderBackend, Refused, Reply
from trunchray.evaluators.attempts.grader import AttemptGrader
from trunchray.evaluators.attempts.model import ModelBackend


class Recorder:
    """A grader that says one thing after another, the last from then on; keeps what it was asked."""

    def __init__(
        self, *replies: str | Exception, look: Callable[[Attempt], object] = lambda _: None, identity: JsonValue = "r"
    ) -> None:
        self.asked: list[Refused | None] = []
        self.closed = False
        self.identity = identity
        self._replies, self._look = replies, look

    async def ask(self, attempt: Attempt, refused: Refused | None = None) -> Reply:
        self.asked.append(refused)
        self._look(attempt)
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply)

    def check(self) -> None:
        raise UsageError("nobody is there")

    async def close(self) -> None:
        self.closed = True


def scripted(*texts: str) -> ModelBackend:
    """A real model client that plays back."""
    mock = Mock(script=tuple(ScriptedReply(text=text) for text in texts))
    return ModelBackend(ModelGrader(model=ModelAgent(name="grader", model="mock/script", mock=mock)))


async def failed(grader: GraderBackend, folder: Path) -> EvaluatorError:
    with pytest.raises(EvaluatorError) as found:
        await AttemptGrader(grader).grade(attempt_case(), attempt_trace(folder))
    return found.value


def stored(folder: Path, name: str = "grading.json") -> Any:
    return json.loads((folder / name).read_text())


def is_there(folder: Path) -> bool:
    return folder.exists()


async def test_grades_become_a_verdict(tmp_path: Path) -> None:
    """It passes when every line does, its score is their share, and each check says what was seen."""
    folder = attempt_folder(tmp_path / "a")
    verdict = await AttemptGrader(scripted(said(True, False))).grade(attempt_case(), attempt_trace(folder))
    assert (verdict.passed, verdict.score) == (False, 0.5)
    assert verdict.message == f"rubric-2 ({LINES[1]!r}): seen 2"
    assert verdict.details == {
        "checks": {
            "rubric-1": {"pass": True, "value": 1.0, "explanation": "seen 1"},
            "rubric-2": {"pass": False, "value": 0.0, "explanation": "seen 2"},
        }
    }
    passed = await AttemptGrader(scripted(said(True, True))).grade(attempt_case(), attempt_trace(folder))
    assert (passed.passed, passed.score, passed.message) == (True, 1.0, None)


async def test_what_is_kept(tmp_path: Path) -> None:
    """grading.json has the documented form, and nothing else of the folder is touched."""
    folder = attempt_folder(tmp_path / "a")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    await AttemptGrader(scripted(said(True, False))).grade(attempt_case(), attempt_trace(folder))
    grading = stored(folder)
    assert grading.pop("grader") == AttemptGrader(scripted(said(True, False))).evaluator_digest(attempt_case())
    assert re.fullmatch("[0-9a-f]{64}", grading.pop("attempt"))
    assert grading == {
        "case_id": "create-1",
        **grades(True, False),
        "summary": {"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5},
        "eval_feedback": {"suggestions": [], "overall": ""},
    }
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}.keys() - before.keys() == {
        folder / "grading.json"
    }
    assert all(path.read_bytes() == content for path, content in before.items())


async def test_the_summary_is_never_taken_from_the_model(tmp_path: Path) -> None:
    """A grader that counts all as passed has not passed them."""
    folder = attempt_folder(tmp_path / "a")
    lied = {"passed": 2, "failed": 0, "total": 2, "pass_rate": 1.0}
    verdict = await AttemptGrader(scripted(said(True, False, summary=lied))).grade(
        attempt_case(), attempt_trace(folder)
    )
    assert verdict.score == 0.5
    assert stored(folder)["summary"]["passed"] == 1


async def test_one_repair(tmp_path: Path) -> None:
    """A reply that cannot be used is answered with why, once; what comes then counts."""
    recorder = Recorder("All of it passes.", said(True, True))
    folder = attempt_folder(tmp_path / "a")
    verdict = await AttemptGrader(recorder).grade(attempt_case(), attempt_trace(folder))
    assert verdict.passed
    first, second = recorder.asked
    assert first is None
    assert second is not None
    assert (second.reply, "not JSON" in second.why) == ("All of it passes.", True)
    again = await AttemptGrader(scripted("Sorry?", said(True, False))).grade(attempt_case(), attempt_trace(folder))
    assert again.score == 0.5


@pytest.mark.parametrize(
    "reply",
    [
        "All expectations pass.",
        f"Here: {said(True, True)}",
        f"{said(True, True)}{said(True, True)}",
        said(True),
        json.dumps({"expectations": grades(True, True)["expectations"][::-1]}),
        said(True, True).replace("segment", "market"),
        said(True, True).replace("true", '"true"', 1),
        said(True, True).replace("seen 1", " "),
        '{"summary": {"passed": 2, "failed": 0, "total": 2, "pass_rate": 1.0}}',
        "",
    ],
    ids=[
        "prose",
        "prose-around",
        "two-objects",
        "missing",
        "reordered",
        "changed",
        "text",
        "blank",
        "summary",
        "empty",
    ],
)
async def test_there_is_never_a_default_verdict(tmp_path: Path, reply: str) -> None:
    """Whatever rule a reply breaks twice, the attempt has no grades: an error, whose reason is kept."""
    folder = attempt_folder(tmp_path / "a")
    error = await failed(scripted(reply), folder)
    assert (error.type, error.retryable, error.boundary) == ("grading_error", True, "evaluator")
    kept = stored(folder, "grading-error.json")
    assert kept.keys() == {"status", "reason"}
    assert kept["status"] == "grading_error"
    assert kept["reason"].startswith("2 replies could not be used; of the last one, ")
    assert kept["reason"] in str(error)
    assert not (folder / "grading.json").exists()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (ProviderError("429 of the provider", type="rate_limited", retryable=True), "429 of the provider"),
        (RuntimeError("boom"), "RuntimeError: boom"),
        (TimeoutError("no answer in 600 s"), "TimeoutError: no answer in 600 s"),
        (UsageError("no key"), "no key"),
    ],
)
async def test_a_grader_that_crashes(tmp_path: Path, broken: Exception, reason: str) -> None:
    """It is not asked again here, and the attempt is marked, not failed."""
    folder = attempt_folder(tmp_path / "a")
    recorder = Recorder(broken)
    error = await failed(recorder, folder)
    assert len(recorder.asked) == 1
    assert (error.type, str(error)) == ("grading_error", f"no grades: {reason}")
    assert stored(folder, "grading-error.json") == {"status": "grading_error", "reason": reason}


@pytest.mark.parametrize("change", ["brief.md", "new.md", "memo.md"])
async def test_a_grader_that_changes_what_it_looks_at(tmp_path: Path, change: str) -> None:
    """Its grades are of something else: they do not count, however good they look."""
    folder = attempt_folder(tmp_path / "a")

    def look(attempt: Attempt) -> None:
        (attempt.folder / "cwd" / change).write_text("now it passes")

    error = await failed(Recorder(said(True, True), look=look), folder)
    assert "the grader changed what it was to look at" in str(error)
    assert not (folder / "grading.json").exists()
    assert (folder / "cwd" / "brief.md").read_text().startswith("# InsuLens")


async def test_a_grader_that_finds_the_workspace_itself(tmp_path: Path) -> None:
    """Where runs are kept on this machine, that one is looked after, too."""
    folder = attempt_folder(tmp_path / "a")
    recorder = Recorder(said(True, True), look=lambda _: (folder / "cwd" / "brief.md").unlink())
    assert "changed what it was to look at" in str(await failed(recorder, folder))


async def test_only_attempts_that_ended_well_are_graded(tmp_path: Path) -> None:
    """Nobody is asked about any other, and none of them is wrong for it."""
    folder, recorder = attempt_folder(tmp_path / "a"), Recorder(said(True, True))
    for status in ("error", "timeout", "exception", "harness-missing", "skipped"):
        with pytest.raises(EvaluatorError, match=f"the status of this one is '{status}'") as found:
            await AttemptGrader(recorder).grade(attempt_case(), attempt_trace(folder, status=status))
        assert found.value.type == "not_ok"
    assert recorder.asked == []
    assert not list(folder.glob("grading*"))


async def test_an_answer_of_no_attempt(tmp_path: Path) -> None:
    """A trace that names none has nothing to grade."""
    for trace in (Trace(output="hi"), Trace(output="hi", steps=(Step("observed", "answer", output={"status": "ok"}),))):
        with pytest.raises(EvaluatorError, match="names no attempt"):
            await AttemptGrader(Recorder("")).grade(attempt_case(), trace)


async def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """What is not there is not graded as if it were empty, and nothing is made in its place."""
    recorder = Recorder(said(False, False))
    error = await failed(recorder, tmp_path / "gone")
    assert (error.type, "holds no attempt that has ended" in str(error)) == ("grading_error", True)
    assert not is_there(tmp_path / "gone")
    (attempt_folder(tmp_path / "begun") / "timing.json").unlink()
    assert "holds no attempt" in str(await failed(recorder, tmp_path / "begun"))
    assert recorder.asked == []


async def test_grades_are_asked_for_once(tmp_path: Path) -> None:
    """A worker that died before it could tell finds what the same grader said."""
    folder = attempt_folder(tmp_path / "a")
    first = await AttemptGrader(Recorder(said(True, False))).grade(attempt_case(), attempt_trace(folder))
    recorder = Recorder(said(True, True))
    assert await AttemptGrader(recorder).grade(attempt_case(), attempt_trace(folder)) == first
    assert recorder.asked == []


async def test_gradings_are_never_overwritten(tmp_path: Path) -> None:
    """Those of another grader, whoever wrote them, stay; new ones are put beside."""
    folder = attempt_folder(tmp_path / "a")
    (folder / "grading.json").write_text('{"eval_id": 1, "expectations": []}')
    grader = AttemptGrader(Recorder(said(True, False), identity="one"))
    await grader.grade(attempt_case(), attempt_trace(folder))
    assert (folder / "grading.json").read_text() == '{"eval_id": 1, "expectations": []}'
    (beside,) = folder.glob("grading-*")
    assert re.fullmatch("grading-[0-9a-f]{12}[.]json", beside.name)
    assert stored(folder, beside.name)["summary"]["passed"] == 1
    recorder = Recorder("nobody asks", identity="one")
    assert (await AttemptGrader(recorder).grade(attempt_case(), attempt_trace(folder))).score == 0.5
    assert recorder.asked == []


async def test_grades_count_only_for_what_was_graded(tmp_path: Path) -> None:
    """A grading that was brought from another attempt, or from before a file was changed, is none of this one."""
    good, bad = attempt_folder(tmp_path / "good"), attempt_folder(tmp_path / "bad", **{"brief.md": "nothing"})
    await AttemptGrader(Recorder(said(True, True))).grade(attempt_case(), attempt_trace(good))
    (bad / "grading.json").write_bytes((good / "grading.json").read_bytes())
    (good / "cwd" / "brief.md").write_text("nothing any more")
    for folder in (good, bad):
        recorder = Recorder(said(True, False))
        assert (await AttemptGrader(recorder).grade(attempt_case(), attempt_trace(folder))).score == 0.5
        assert len(recorder.asked) == 1


async def test_two_that_grade_the_same_agree(tmp_path: Path) -> None:
    """Where another worker was first meanwhile, its grades count: rows say what the folder says."""
    folder = attempt_folder(tmp_path / "a")
    quick = AttemptGrader(Recorder(said(True, False)))

    def look(_: Attempt) -> None:
        elsewhere(lambda: asyncio.run(quick.grade(attempt_case(), attempt_trace(folder))))

    slow = AttemptGrader(Recorder(said(True, True), look=look))
    assert (await slow.grade(attempt_case(), attempt_trace(folder))).score == 0.5
    assert [path.name for path in folder.glob("grading*")] == ["grading.json"]


@pytest.mark.parametrize("file", ["prompt.txt", "transcript.jsonl", "timing.json"])
async def test_a_grader_that_changes_the_attempt_itself(tmp_path: Path, file: str) -> None:
    """All that is kept of it is looked after, and not the workspace alone."""
    folder = attempt_folder(tmp_path / "a")
    recorder = Recorder(said(True, True), look=lambda _: (folder / file).write_text("it went well"))
    assert "changed what it was to look at" in str(await failed(recorder, folder))
    assert not (folder / "grading.json").exists()


async def test_stored_answers_do_not_say_where_to_write(tmp_path: Path) -> None:
    """Of a run that came from somebody else, or was moved, attempts are looked for in its own folder alone."""
    elsewhere, run = attempt_folder(tmp_path / "elsewhere"), tmp_path / "run"
    own = attempt_folder(run / "skill" / "create-1")
    grader = AttemptGrader(Recorder(said(True, True)), str(run))
    await grader.grade(attempt_case(), attempt_trace(elsewhere, path="skill/create-1"))
    assert stored(own)["summary"]["passed"] == 2
    for path in ("../elsewhere", str(elsewhere), "", None):
        with pytest.raises(EvaluatorError, match="does not say where in the run"):
            await grader.grade(attempt_case(), attempt_trace(elsewhere, path=path))
    assert not list(elsewhere.glob("grading*"))


async def test_an_attempt_at_another_case(tmp_path: Path) -> None:
    """Its grades would be those of something that nobody has asked."""
    folder = attempt_folder(tmp_path / "a")
    text = (folder / "timing.json").read_text()
    (folder / "timing.json").write_text(text.replace("create-1", "create-2"))
    error = await failed(Recorder(said(True, True)), folder)
    assert "holds an attempt at 'create-2', and not at 'create-1'" in str(error)


async def test_a_later_try_may_succeed(tmp_path: Path) -> None:
    """An attempt that had no grades is graded when it is asked for again."""
    folder = attempt_folder(tmp_path / "a")
    await failed(Recorder("no"), folder)
    assert (await AttemptGrader(Recorder(said(True, True))).grade(attempt_case(), attempt_trace(folder))).passed
    assert stored(folder)["summary"]["passed"] == 2
    assert not (folder / "grading-error.json").exists()


async def test_runs_that_are_kept_elsewhere(tmp_path: Path) -> None:
    """Folders in any store are copied to be looked at, and get their grades."""
    folder, uri = attempt_folder(tmp_path / "a", deep__er__x="y"), "memory://attempts/skill/create-1"
    store = Store(uri)
    for path in Store(str(folder)).find():
        store.write(path, (folder / path).read_bytes())
    seen: list[str] = []

    def look(attempt: Attempt) -> None:
        seen.extend(
            sorted(each.relative_to(attempt.folder).as_posix() for each in attempt.folder.rglob("*") if each.is_file())
        )

    grader = AttemptGrader(Recorder(said(True, True), look=look))
    assert (await grader.grade(attempt_case(), attempt_trace(uri))).passed
    kept = ["prompt.txt", "stderr.txt", "timing.json", "transcript.jsonl"]
    assert seen == ["cwd/brief.md", "cwd/deep/er/x", "cwd/memo.md", *kept]
    assert json.loads(store.read("grading.json"))["case_id"] == "create-1"


async def test_links_pipes_and_locked_folders_in_a_workspace(tmp_path: Path) -> None:
    """Links stay links unless they lead out, nothing waits for a pipe, and nothing is left of the copy."""
    folder = attempt_folder(tmp_path / "a", locked__x="y")
    (folder / "cwd" / "loop").symlink_to(".")
    (folder / "cwd" / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(folder / "cwd" / "pipe")
    (folder / "cwd" / "locked").chmod(0o500)
    copies: list[Path] = []

    def look(attempt: Attempt) -> None:
        copies.append(attempt.folder)
        assert (attempt.folder / "cwd" / "loop").is_symlink()
        assert not (attempt.folder / "cwd" / "passwd").is_symlink()
        assert not (attempt.folder / "cwd" / "pipe").exists()

    verdict = await AttemptGrader(Recorder(said(True, True), look=look)).grade(attempt_case(), attempt_trace(folder))
    assert verdict.passed
    assert not copies[0].exists()
    (folder / "cwd" / "locked").chmod(0o700)


async def test_the_order_of_a_rubric_is_that_of_its_numbers(tmp_path: Path) -> None:
    """However checks are sorted where they are stored, rubric-10 comes after rubric-9."""
    lines = {f"rubric-{number}": RubricLine(text=f"line {number}") for number in (1, 10, 11, 2, 3)}
    reply = json.dumps(
        {
            "expectations": [
                {"text": f"line {number}", "passed": number != 10, "evidence": "e"} for number in (1, 2, 3, 10, 11)
            ]
        }
    )
    verdict = await AttemptGrader(Recorder(reply)).grade(
        attempt_case({**lines}), attempt_trace(attempt_folder(tmp_path / "a"))
    )
    details: Any = verdict.details
    assert [name for name, check in details["checks"].items() if not check["pass"]] == ["rubric-10"]


async def test_an_attempt_that_nobody_grades() -> None:
    """That it ended well is no verdict on what it made; nothing is written."""
    with pytest.raises(EvaluatorError, match="nobody was named who grades it") as raised:
        await AttemptGrader().grade(attempt_case({"completed": Completed()}), attempt_trace("/no/such/folder"))
    assert raised.value.type == NOT_GRADED
    with pytest.raises(EvaluatorError, match="nobody was named who grades"):
        await AttemptGrader().grade(attempt_case(), attempt_trace("/no/such/folder"))
    with pytest.raises(EvaluatorError, match="is not a check of attempts"):
        await AttemptGrader().grade(attempt_case({"x": NonEmpty()}), attempt_trace("/no/such/folder"))


@pytest.mark.parametrize(("expected", "loaded"), [(True, True), (True, False), (False, True), (False, False)])
async def test_trigger_queries(expected: bool, loaded: bool) -> None:
    """A query is right when the skill was loaded as expected."""
    case = attempt_case({"triggered": Triggered(expected=expected)})
    verdict = await AttemptGrader().grade(case, attempt_trace("/no/such/folder", loaded=loaded))
    assert verdict.passed == (expected == loaded)
    with pytest.raises(EvaluatorError, match="nobody can tell"):
        await AttemptGrader().grade(case, attempt_trace("/no/such/folder"))


def test_the_digest_is_of_checks_and_grader() -> None:
    """Another rubric or another grader grades otherwise; a grader that is not asked does not count."""
    one, other = AttemptGrader(scripted("a")), AttemptGrader(scripted("b"))
    case, fewer = attempt_case(), attempt_case({"rubric-1": RubricLine(text=LINES[0])})
    assert one.evaluator_digest(case) == AttemptGrader(scripted("a")).evaluator_digest(case)
    assert len({one.evaluator_digest(case), other.evaluator_digest(case), one.evaluator_digest(fewer)}) == 3
    done = attempt_case({"completed": Completed()})
    assert one.evaluator_digest(done) == other.evaluator_digest(done) == AttemptGrader().evaluator_digest(done)


async def test_what_a_grader_holds_is_given_back() -> None:
    """Closing and checking reach who is asked; without one there is nothing to do."""
    recorder = Recorder("")
    await AttemptGrader(recorder).close()
    assert recorder.closed
    with pytest.raises(UsageError, match="nobody is there"):
        AttemptGrader(recorder).check()
    AttemptGrader().check()
    await AttemptGrader().close()


async def test_cancelling_is_no_error(tmp_path: Path) -> None:
    """A run that is stopped leaves no mark on an attempt that was being graded, and no copy of it."""
    folder, copies = attempt_folder(tmp_path / "a"), list[Path]()
    task: asyncio.Task[Any] | None = None

    def look(attempt: Attempt) -> None:
        copies.append(attempt.folder)
        assert task
        task.cancel()

    grader = AttemptGrader(Recorder(said(True, True), look=look))
    task = asyncio.ensure_future(grader.grade(attempt_case(), attempt_trace(folder)))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not copies[0].exists()
    assert not list(folder.glob("grading*"))


@pytest.mark.parametrize("lost", ["cwd", "transcript.jsonl"])
@pytest.mark.parametrize("link", [False, True])
async def test_what_is_lost_of_an_attempt_is_no_wrong_answer(tmp_path: Path, lost: str, link: bool) -> None:
    """Nobody is asked what the rest is worth, nor what a link in its place leads to."""
    folder, recorder = attempt_folder(tmp_path / "a"), Recorder(said(False, False))
    (folder / lost).rename(tmp_path / "elsewhere")
    if link:
        (folder / lost).symlink_to(tmp_path / "elsewhere")
    error = await failed(recorder, folder)
    assert (error.type, recorder.asked) == ("grading_error", [])
    assert f"{folder}/{lost} is gone" in stored(folder, "grading-error.json")["reason"]

"""What the viewer says of stored runs, whether their rows are in parts or in the results of a report."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.made_runs import make_run
from support.releases import make_release
from support.rows import NOW
from trunchray.adapters import parts
from trunchray.adapters.releases import StoredRelease
from trunchray.adapters.runs import RunFolder
from trunchray.core.plan import make_plan
from trunchray.core.receipt import Counts, Receipt
from trunchray.core.run import Selection
from trunchray.core.trial import Result, Step, Trace, Verdict
from trunchray.engine.launch import report_again
from trunchray.errors import EvalFailure, StoreError, UsageError
from trunchray.frontends.evaluation.evaluate import evaluate
from trunchray.frontends.viewer.viewer import Viewer

pytest.importorskip("duckdb", reason="no DuckDB: `pip install 'trunchray[view]'`")

Look = Callable[..., Viewer]


MARKS = "\\E .*+?^$()[a]{1}|\\Q~#&@!-_%'\";<>/\t\n\r"
"""What means something to somebody."""
OUTCOMES = {"x": list("pppfpefp"), "y": list("pp-fp-fp")}
"""By case: one of x ends in an error, two of y are not run."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> StoredRelease:
    return make_release(
        tmp_path_factory.mktemp("releases"),
        8,
        check=lambda number: {"kind": "contains", "expected": f"secret {number}"},
    )


@pytest.fixture(scope="module", params=["parts", "results"])
def viewer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, release: StoredRelease
) -> Iterator[Viewer]:
    """Looks at a run before its first report or after it, in a folder with an odd name."""
    here = tmp_path_factory.mktemp("view")
    run = make_run(here / "[odd] 'name; & *?" / "run", release, OUTCOMES, change=_answered)
    if request.param != "parts":
        report_again(run, pytest.fail)
    with Viewer([run], here, private=False) as looking:
        looking.questions["runs"]({})
        yield looking


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Look]:
    """Opens a viewer of runs, which looks at them whenever it is asked."""
    with ExitStack() as stack:

        def opened(*uris: str, private: bool = False) -> Viewer:
            clock = iter(range(0, 1000, 10)).__next__
            return stack.enter_context(Viewer(uris, tmp_path, private=private, clock=clock))

        yield opened


def _answered(result: Result) -> Result:
    """Says which case it is about."""
    if result.trace is None or result.verdict is None:
        return result
    text = f"Case {result.trial.case_id} is 100% ÄRGERLICH: σας, Straſse, İ, 5 µm {MARKS}"
    trace = result.trace.model_copy(update={"output": text})
    verdict = result.verdict.model_copy(update={"message": None if result.verdict.passed else "not_quite"})
    return result.model_copy(update={"trace": trace, "verdict": verdict})


def cases(found: Any) -> list[str]:
    return [trial["case"] for trial in found["trials"]]


def test_every_counted_row_is_listed_once(viewer: Viewer):
    """By case in the order of the release, then by model."""
    found: Any = viewer.trials({})
    assert (found["total"], found["pages"]) == (14, 1)
    assert [(trial["case"], trial["model"]) for trial in found["trials"]][:5] == [
        ("c0", "x"), ("c0", "y"), ("c1", "x"), ("c1", "y"), ("c2", "x"),
    ]  # fmt: skip


def test_the_time_of_a_trial_is_that_of_its_answer(viewer: Viewer):
    """As in reports: without waiting and grading."""
    found: Any = viewer.trials({"outcome": "passed"})
    assert {round(trial["seconds"], 6) for trial in found["trials"]} == {0.5}


def test_filters_leave_what_they_name(viewer: Viewer):
    """Run, model, eval, outcome and attempt, alone and together."""

    def total(**query: str) -> int:
        found: Any = viewer.trials(query)
        return found["total"]

    assert (total(model="x"), total(outcome="error"), total(eval="odd"), total(run="run")) == (8, 1, 7, 14)
    assert (total(model="y", outcome="failed"), total(attempt="1"), total(attempt="2"), total(model="z")) == (
        2,
        14,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C3", ["c3", "c3"]),
        ("case c0 IS", ["c0", "c0"]),
        ("ärgerlich", None),
        ("100%", None),
        ("ΣΑΣ, STRASSE", None),
        ("5 ΜM", None),
        ("straße", []),
        ("i, 5", []),
        (MARKS, None),
        ("c.", []),
        ("no answer", ["c5"]),
        ("notXquite", []),
        ("' OR 1=1 --", []),
    ],
)
def test_a_text_is_found_wherever_people_would_look(viewer: Viewer, text: str, expected: list[str] | None):
    """In the id, the answer or the reason of an error; literally, in capital or small letters.

    Letters that are one another's capital or small ones are alike, whatever they are; one is never like two.
    """
    found: Any = viewer.trials({"text": text})
    assert found["total"] == 13 if expected is None else cases(found) == expected


def test_what_evaluators_said_is_private(tmp_path: Path, release: StoredRelease, look: Look):
    """They quote what they expect, so a list and an answer tell it, and a search finds it, only when asked for."""
    uri = make_run(tmp_path / "run", release, OUTCOMES, change=_answered)
    asked = {"run": "run", "id": "c3", "model": "x", "attempt": "1"}
    for private in (False, True):
        viewer = look(uri, private=private)
        found: Any = viewer.trials({"text": "NOT_QUITE"})
        assert cases(found) == (["c3", "c3", "c6", "c6"] if private else [])
        told = str(viewer.trials({"outcome": "failed"})), str(viewer.answer(asked))
        assert ["not_quite" in text for text in told] == [private, private]
        assert "no answer" in str(viewer.trials({"outcome": "error"}))


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URI of a run of a Python evaluation, of whose two cases one misses its check."""
    out = tmp_path_factory.mktemp("evaluations")
    with pytest.raises(EvalFailure):
        evaluate(
            name="refunds",
            task=str.upper,
            data=[
                {"name": "charged twice", "input": "refund please", "expectedOutput": "REFUND"},
                {"name": "never came", "input": "it never came", "expectedOutput": "the answer key"},
            ],
            scorers={"says so": says_so},
            quiet=True,
            pool="local",
            out=out,
        )
    return str(next(out.glob("refunds-*")))


def says_so(run: Any) -> dict[str, Any]:
    """A check that says why."""
    return {"pass": "REFUND" in run.output, "explanation": f"it says {run.output.lower()!r}"}


def test_reasons_of_ones_own_checks_are_told(evaluation: str, look: Look):
    """Who evaluates their own code wants to know why a case misses; what cases expect is hidden until asked for."""
    viewer = look(evaluation)
    case_id = viewer.find_case("never came")
    found: Any = viewer.trials({"text": "IT SAYS 'it never"})
    assert cases(found) == [case_id]
    assert "it says 'it never came'" in found["trials"][0]["message"]
    trial = found["trials"][0]
    answer: Any = viewer.answer({"run": trial["run"], "id": case_id, "model": trial["model"], "attempt": "1"})
    assert "it says 'it never came'" in str(answer["remarks"])
    page: Any = viewer.case({"id": case_id})
    assert (page["hidden"], "answer key" in str(page)) == (["private"], False)


def test_a_benchmark_beside_an_evaluation_keeps_its_answers(
    evaluation: str, tmp_path: Path, release: StoredRelease, look: Look
):
    """Looked at together, only the evaluation's reasons are told and searched."""
    viewer = look(evaluation, make_run(tmp_path / "run", release, OUTCOMES, change=_answered))
    assert cases(viewer.trials({"text": "not_quite"})) == []
    assert "not_quite" not in str(viewer.trials({"outcome": "failed"}))
    assert "it says" in str(viewer.trials({"outcome": "failed"}))
    page: Any = viewer.case({"id": "c3"})
    assert page["hidden"] == ["private", "verdicts"]


def test_cases_are_found_by_the_names_that_authors_gave_them(evaluation: str, viewer: Viewer, look: Look):
    """By id or by title; a name that several cases have is refused with their ids, an unknown one with the nearest."""
    assert look(evaluation).find_case("charged twice").startswith("charged-twice-")
    assert viewer.find_case("c3") == "c3"
    with pytest.raises(UsageError, match="no case 'charged twise' in these runs — did you mean 'charged twice'"):
        look(evaluation).find_case("charged twise")


def test_trials_are_sorted_both_ways(viewer: Viewer):
    """What has no value comes last either way."""
    up: Any = viewer.trials({"sort": "score", "model": "x"})
    down: Any = viewer.trials({"sort": "score", "model": "x", "order": "down"})
    assert cases(up)[:2] == ["c3", "c6"]
    assert cases(down)[0] == "c0"
    assert cases(up)[-1] == cases(down)[-1] == "c5"


def test_an_error_says_why(viewer: Viewer):
    """Where it failed and how, in the list and on the page of the case."""
    found: Any = viewer.trials({"outcome": "error"})
    assert [(trial["failure"], trial["message"], trial["output"]) for trial in found["trials"]] == [
        ("provider/timeout", "no answer", None)
    ]
    answer: Any = viewer.answer({"run": "run", "id": "c5", "model": "x", "attempt": "1"})
    assert (answer["failure"], answer["remarks"][0]["text"], answer["passages"]) == (
        "provider/timeout",
        "no answer",
        [],
    )


def test_names_of_folders_say_nothing(tmp_path: Path, release: StoredRelease, look: Look):
    """Other tools take `attempt=7` in a path for a column; rows say what they are themselves."""
    uri = make_run(tmp_path / "attempt=7" / "agent=z" / "eval_id=e" / "run", release, OUTCOMES)
    for _ in range(2):
        found: Any = look(uri).trials({"outcome": "error"})
        assert [(one["model"], one["eval"], one["attempt"]) for one in found["trials"]] == [("x", "odd", 1)]
        report_again(uri, pytest.fail)


def test_expected_answers_are_told_only_when_asked_for(tmp_path: Path, release: StoredRelease, look: Look):
    """The page of a case has what a model was asked; checks and data are for who wants to see them."""
    run = make_run(tmp_path / "run", release, OUTCOMES)
    plain, private = look(run).case({"id": "c1"}), look(run, private=True).case({"id": "c1"})
    assert "secret 1" not in str(plain)
    assert "'number'" not in str(plain).replace('"', "'")
    assert "prompt 1" in str(plain)
    assert "secret 1" in str(private)
    assert '"number": 1' in str(private)


def test_cases_stand_beside_each_other_as_in_the_list(viewer: Viewer):
    """The one before, the one after and the place, in the order of the search."""
    assert viewer.beside({"id": "c0"}) == {"place": 1, "before": None, "after": "c1", "of": 8}
    assert viewer.beside({"id": "c6", "outcome": "failed"}) == {"place": 2, "before": "c3", "after": None, "of": 2}
    assert viewer.beside({"id": "c0", "outcome": "failed"}) is None


def test_a_row_that_came_later_counts(tmp_path: Path, release: StoredRelease, look: Look):
    """As in reports: of two rows of a trial, the one of the part that is listed last. It shows without a restart."""
    uri = make_run(tmp_path / "run", release, OUTCOMES)
    viewer = look(uri)
    before: Any = viewer.runs()
    _answer_again(uri, "c5")
    after: Any = viewer.runs()
    found: Any = viewer.trials({"text": "c5"})
    assert [(trial["outcome"], trial["output"]) for trial in found["trials"]] == [("passed", "at last")]
    assert before["runs"][0]["version"] != after["runs"][0]["version"]
    report_again(uri, pytest.fail)
    assert look(uri).trials({"text": "c5"}) == found
    unchanged: Any = viewer.runs()
    assert unchanged["runs"][0]["version"] == after["runs"][0]["version"]


def test_the_page_of_a_case_is_of_the_rows_of_the_moment(tmp_path: Path, release: StoredRelease, look: Look):
    """Also for people who never go to the list, and when a report has put other results in place of those shown."""
    uri = make_run(tmp_path / "run", release, OUTCOMES)
    report_again(uri, pytest.fail)
    viewer = look(uri)
    _answer_again(uri, "c5")
    report_again(uri, pytest.fail)
    found: Any = viewer.case({"id": "c5"})
    assert [answer["outcome"] for answer in found["answers"]] == ["passed"]
    answer: Any = viewer.answer({"run": "run", "id": "c5", "model": "x", "attempt": "1"})
    assert [passage["text"] for passage in answer["passages"]] == ["at last"]


def test_results_of_a_report_are_not_shown_once_rows_have_come_since(
    tmp_path: Path, release: StoredRelease, look: Look
):
    """They would be old news."""
    uri = make_run(tmp_path / "run", release, OUTCOMES)
    report_again(uri, pytest.fail)
    _answer_again(uri, "c5")
    found: Any = look(uri).trials({"text": "c5"})
    assert [trial["outcome"] for trial in found["trials"]] == ["passed"]


def test_runs_of_overlapping_cases_are_searched_case_by_case(tmp_path: Path, release: StoredRelease, look: Look):
    """An id is that of one case, whichever runs have brought it."""
    chosen = [("c0", "c1", "c2"), ("c0", "c1", "c2", "c3"), ("c4", "c5", "c6")]
    viewer = look(
        *(
            make_run(tmp_path / str(place), release, {"x": ["p"] * 8}, selection=Selection(cases=ids))
            for place, ids in enumerate(chosen)
        )
    )
    for number in range(7):
        found: Any = viewer.trials({"text": f"C{number}"})
        assert set(cases(found)) == {f"c{number}"}


def test_several_runs_are_looked_at_together(tmp_path: Path, release: StoredRelease, look: Look):
    """Each under a name of its own; a case that differs between them is shown as it is in each."""
    other = make_release(tmp_path / "others", 8, prompt=lambda number: f"another {number}")
    runs = [
        make_run(tmp_path / place / "run", each, {"x": list("pppppppp")})
        for place, each in (("a", release), ("b", release), ("c", other))
    ]
    viewer = look(*runs)
    known: Any = viewer.runs()
    assert [run["name"] for run in known["runs"]] == ["run", "run (2)", "run (3)"]
    found: Any = viewer.case({"id": "c1"})
    assert [version["runs"] for version in found["versions"]] == [["run", "run (2)"], ["run (3)"]]
    assert [answer["run"] for answer in found["answers"]] == ["run", "run (2)", "run (3)"]
    third: Any = viewer.trials({"run": "run (3)"})
    assert third["total"] == 8
    twice: Any = look(runs[0], runs[0]).trials({})
    assert twice["total"] == 16


def test_damaged_parts_are_named_and_left_out(tmp_path: Path, release: StoredRelease, look: Look):
    """A torn part takes its own rows along and no others."""
    uri = make_run(tmp_path / "run", release, OUTCOMES)
    receipt = next(iter(RunFolder(uri).commits().values()))
    (tmp_path / "run" / receipt.parts[0].path).write_bytes(b"torn")
    viewer = look(uri)
    found: Any = viewer.trials({})
    known: Any = viewer.runs()
    assert found["total"] == 13
    assert receipt.parts[0].path in known["runs"][0]["notes"][0]


def test_long_texts_are_cut_and_can_be_had_whole(tmp_path: Path, release: StoredRelease, look: Look):
    """An answer of a million characters, and a trace of a thousand steps."""
    said = [Step("model", "m", 1, {"text": f"step {number}"}) for number in range(999)]
    trace = Trace(
        output="long " * 200_000, steps=(*said, Step("tool", "look", {}, {"type": "json", "value": {"a": 1}}))
    )
    uri = make_run(
        tmp_path / "run", release, OUTCOMES, change=lambda result: result.model_copy(update={"trace": trace})
    )
    viewer, query = look(uri), {"run": "run", "id": "c0", "model": "x", "attempt": "1"}
    answer: Any = viewer.answer(query)
    assert (answer["count"], len(answer["passages"])) == (1001, 200)
    rest: Any = viewer.answer(query | {"start": "998"})
    assert [passage["text"][:6] for passage in rest["passages"]] == ["step 9", '{\n  "a', "long l"]
    assert (len(rest["passages"][-1]["text"]), rest["passages"][-1]["length"]) == (20_000, 1_000_000)
    assert viewer.passage(query | {"start": "1000"}) == trace.output


@pytest.mark.parametrize(
    ("question", "query", "message"),
    [
        ("case", {"id": "c99"}, "no case 'c99'"),
        ("case", {}, "id: is missing"),
        ("trials", {"run": "rum"}, "did you mean 'run'"),
        ("trials", {"page": "0"}, "page: "),
        ("answer", {"id": "c0", "run": "run", "model": "z", "attempt": "1"}, "no row of attempt 1 of 'z'"),
        ("answer", {"id": "c0", "run": "run", "model": "x", "attempt": "-1"}, "attempt: '-1' is no number"),
        ("passage", {"id": "c0", "run": "run", "model": "x", "attempt": "1", "start": "7"}, "7 is not one of 1"),
        ("passage", {"id": "c0", "run": "run", "start": "9"}, "9 is not one of 2"),
    ],
)
def test_questions_that_make_no_sense_are_refused(viewer: Viewer, question: str, query: dict[str, str], message: str):
    """In a line that says what is wrong."""
    with pytest.raises(UsageError, match=message.replace("?", ".")):
        viewer.questions[question](query)


def test_a_run_that_vanishes_is_said_to_be_gone(tmp_path: Path, release: StoredRelease, look: Look):
    """What was read is still listed; what was not is an error, and no crash."""
    run = make_run(tmp_path / "run", release, OUTCOMES)
    viewer = look(run)
    for file in Path(run).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(StoreError):
        viewer.answer({"run": "run", "id": "c0", "model": "x", "attempt": "1"})


def test_parts_of_older_versions_stand_beside_new_ones(tmp_path: Path, release: StoredRelease, look: Look):
    """Columns that came later are missing there, and nothing else."""
    uri = make_run(tmp_path / "run", release, OUTCOMES)
    _answer_again(uri, "c5", without=["earlier_errors", "reused"])
    _answer_again(uri, "c0", without=["earlier_errors", "reused"])
    viewer = look(uri)
    found: Any = viewer.trials({"text": "at last"})
    answer: Any = viewer.answer({"run": "run", "id": "c5", "model": "x", "attempt": "1"})
    assert (cases(found), answer["earlier_errors"]) == (["c0", "c5"], None)


def _answer_again(uri: str, case_id: str, *, without: Sequence[str] = ()) -> None:
    """Store another row of a trial of model x, as a retry does; `without` some columns."""
    folder = RunFolder(uri)
    spec = folder.spec()
    assert spec
    index = [(f"c{number}", "odd" if number % 2 else "even") for number in range(8)]
    shard = next(s for s in make_plan(spec, index).shards if s.case_ids == (case_id,) and s.agent.name == "x")
    before = folder.commits()[shard.id]
    result = Result(
        trial=shard.trials()[0],
        eval_id="odd",
        agent_digest=shard.agent.digest,
        trace=Trace(output="at last"),
        verdict=Verdict(passed=True, score=1),
        started_at=NOW,
        ended_at=NOW,
    )
    row = parts.row(result, release_digest=spec.release_digest, versions="{}")
    stored = io.BytesIO()
    pq.write_table(parts.decode(parts.encode([row])).drop_columns(without), stored)
    part = folder.add_part(shard.id, stored.getvalue(), 1)
    receipt = before.model_copy(update={"parts": (*before.parts, part), "counts": Counts(passed=1)})
    folder.commit(Receipt.model_validate(receipt.model_dump()))

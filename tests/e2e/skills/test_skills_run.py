"""`trunchray skills run`: cases through a coding tool, on every pool, with run folders on disk and on S3."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from support.commands import CommandLine
from support.s3 import Bucket
from support.skill_project import GRADES, LOADS, SkillProject, case, complete, files
from trunchray.adapters.store import Store

ROOT = Path(__file__).parents[3]
PLAIN = {"case.json", "prompt.txt", "transcript.jsonl", "stderr.txt", "timing.json"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


@pytest.fixture
def trunchray(here: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(here, capsys)


@pytest.fixture
def project(here: Path) -> SkillProject:
    return SkillProject(here / "project", str(here / "out"))


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, here: Path) -> str:
    """Where runs are kept: on a disk, or on S3."""
    bucket: Bucket | None = request.getfixturevalue("s3") if request.param == "s3" else None
    return f"{bucket.uri}/out" if bucket else str(here / "out")


@pytest.fixture
def anywhere(place: str, here: Path) -> SkillProject:
    """A project whose runs are kept there."""
    return SkillProject(here / "project", place)


TWO = pytest.mark.parametrize(("pool", "place"), [("local", "disk"), ("ray", "s3")], indirect=True)
"""Here on a disk, and on Ray with S3."""


def test_a_quality_run(pool: str, anywhere: SkillProject, trunchray: CommandLine):
    """The layout is the documented one, the summary is sorted and is both stored and printed; exit code 0."""
    done = trunchray("skills", "run", *anywhere.options("--runs", 2, "--pool", pool))
    assert (done.code, done.err) == (0, "")
    (name,) = anywhere.runs()
    assert re.fullmatch(r"\d{8}-\d{6}-elephants-quality", name)
    run = anywhere.run()
    assert files(run) == {"run.json", "execution-summary.json"} | {
        f"skill/{case_id}/run-{number}/{file}"
        for number in (1, 2)
        for case_id, made in (("first", {"cwd/out/a.txt"}), ("second", {"cwd/files/in.txt"}))
        for file in PLAIN | made | staged()
    }
    assert done.json == json.loads(run.read("execution-summary.json"))
    assert [(each["case_id"], each["run"], each["status"], each["case_dir"]) for each in done.json["results"]] == [
        ("first", 1, "ok", "skill/first/run-1"),
        ("first", 2, "ok", "skill/first/run-2"),
        ("second", 1, "ok", "skill/second/run-1"),
        ("second", 2, "ok", "skill/second/run-2"),
    ]
    assert {key: done.json[key] for key in ("mode", "total", "executed", "skipped", "failures", "run_id")} == {
        "mode": "quality",
        "total": 4,
        "executed": 4,
        "skipped": 0,
        "failures": 0,
        "run_id": name,
    }
    assert run.read("skill/second/run-2/prompt.txt") == b"So far so good.\n\nDescribe the second purple elephant."
    assert json.loads(run.read("skill/second/run-2/case.json"))["state_prefix"] == "So far so good. \n"


def staged() -> set[str]:
    skill = "cwd/.agents/skills/elephants"
    names = ("scripted.json", "files/in.txt")  # and neither cases nor queries, which say what is expected
    return {f"{skill}/SKILL.md", *(f"{skill}/evals/{name}" for name in names)}


def test_what_run_json_says(project: SkillProject, trunchray: CommandLine):
    """Where everything came from, the hashes of fixtures and skill, and the unfilled command; times are UTC."""
    assert trunchray("skills", "run", *project.options("--pool", "local")).code == 0
    about = json.loads(project.run().read("run.json"))
    cases, command = project.skill / "evals" / "cases.json", json.loads(project.harness.read_text())["command"]
    assert about.pop("token")
    assert re.fullmatch(r"[0-9a-f]{64}", about.pop("question"))
    assert re.fullmatch(r"[0-9a-f]{64}", about.pop("skill_trees").pop("skill"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", about.pop("started_at"))
    assert about.pop("trunchray")
    assert about == {
        "run_id": project.runs()[0],
        "cases_file": str(cases),
        "skill_path": str(project.skill),
        "variant_path": None,
        "mode": "quality",
        "configs": ["skill"],
        "runs_per_case": 1,
        "harness": str(project.harness),
        "command": command,
        "case_count": 2,
        "fixtures": [
            {
                "file": "files/in.txt",
                "sha256": "c96c6d5be8d08a12e7b5cdc1b207fa6b2430974c86803d8891675e76fd992c20",
            }
        ],
        "grader": None,
    }


def test_timing_is_the_last_file_of_an_attempt(project: SkillProject, trunchray: CommandLine):
    """Whoever sees it sees all of the attempt."""
    assert trunchray("skills", "run", *project.options("--pool", "local")).code == 0
    attempt = Path(project.run().uri) / "skill" / "first"
    last = (attempt / "timing.json").stat().st_mtime_ns
    assert all(path.lstat().st_mtime_ns <= last for path in attempt.rglob("*"))


def test_attempts_that_fail(pool: str, project: SkillProject, trunchray: CommandLine):
    """Exit code 1; each is told with its status, in the order of the cases, whatever order they ended in."""
    project.cases(
        case("late", {"sleep": 600}, timeout=1),
        case("fails", {"stderr": "it broke\n"}, {"exit": 3}),
        case("works", {"say": "done"}),
    )
    done = trunchray("skills", "run", *project.options("--pool", pool))
    assert done.code == 1
    assert [(each["case_id"], each["status"], each["return_code"]) for each in done.json["results"]] == [
        ("late", "timeout", -1),
        ("fails", "error", 3),
        ("works", "ok", 0),
    ]
    assert done.json["results"][1]["error_tail"] == "it broke\n\nexit code 3: it broke"
    assert [done.json[key] for key in ("executed", "failures")] == [1, 2]
    outcomes = {row["case_id"].rpartition("-")[0]: row["outcome"] for row in rows(project, trunchray)}
    assert outcomes == {"late": "error", "fails": "error", "works": "error"}


def test_a_tool_of_which_nothing_can_be_read(project: SkillProject, trunchray: CommandLine):
    """Is warned about once; its tokens and tool calls are unknown, and not 0."""
    project.use({"command": [sys.executable, "-S", "-c", "print('done')", "{prompt}"]})
    options = [option for option in project.options("--pool", "local") if option != "--json"]
    done = trunchray("skills", "run", *options)
    assert (done.code, done.err.count("no event could be read")) == (0, 1)
    (line,) = (line.split() for line in done.out.splitlines() if line.startswith("skill "))
    assert (line[1:5], line[-2:]) == (["2", "2", "0", "–"], ["–", "–"])


def rows(project: SkillProject, trunchray: CommandLine) -> list[dict[str, str]]:
    """The rows of the only run, as `export` writes them."""
    assert trunchray("export", project.run().uri, "--to", "csv", "--out", "rows.csv").code == 0
    with Path("rows.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_command_that_is_not_there(project: SkillProject, trunchray: CommandLine):
    """Is no wrong answer: the status is harness-missing, the exit code 1."""
    project.use({"command": ["no-such-tool", "{prompt}"]})
    done = trunchray("skills", "run", *project.options("--pool", "local"))
    assert (done.code, {each["status"] for each in done.json["results"]}) == (1, {"harness-missing"})
    assert "there is no command 'no-such-tool'" in done.json["results"][0]["error_tail"]


def test_without_a_harness(anywhere: SkillProject, trunchray: CommandLine):
    """Everything is staged, nothing runs, every status is skipped; exit code 3."""
    done = trunchray("skills", "run", *anywhere.options("--mode", "baseline", "--pool", "local", harness=False))
    assert done.code == 3
    assert {each["status"] for each in done.json["results"]} == {"skipped"}
    assert [done.json[key] for key in ("total", "executed", "skipped", "failures")] == [4, 0, 4, 0]
    run = anywhere.run()
    kept = files(run)
    assert {"skill/first/prompt.txt", "skill/second/cwd/files/in.txt", "bare/second/cwd/files/in.txt"} <= kept
    assert "skill/first/cwd/.agents/skills/elephants/SKILL.md" in kept
    assert not any("/cwd/.agents/" in path for path in kept if path.startswith("bare/"))
    assert json.loads(run.read("run.json"))["command"] is None
    assert "give --harness FILE" in json.loads(run.read("run.json"))["harness"]


def test_what_is_wrong_is_found_before_anything_runs(project: SkillProject, trunchray: CommandLine):
    """Exit code 2, one message, and not even a folder for runs."""
    options = project.options()[:4]
    assert "--case-ids: there is no case 'frist'" in trunchray.refused(
        "skills", "run", *options, "--harness", project.harness, "--case-ids", "frist,second"
    )
    assert "none.json" in trunchray.refused("skills", "run", *options, "--harness", "none.json")
    placed = (*options[:2], "--output-dir", project.harness)
    assert "--output-dir" in trunchray.refused("skills", "run", *placed, "--harness", project.harness)


def test_runs_are_not_kept_in_the_skill(project: SkillProject, trunchray: CommandLine):
    """Each would be copied into the next, and the skill never be the same again; nothing is written there."""
    project.out = str(project.skill / "evals" / "out")
    for command in ("run", "triggers"):
        refused = trunchray.refused("skills", command, *without_json(project.options()))
        assert f"is in the skill '{project.skill}'" in " ".join(refused.split())
    assert not Path(project.out).exists()


def test_instructions_above_the_rooms_are_refused_before_there_is_a_run(
    project: SkillProject,
    trunchray: CommandLine,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
):
    """Every attempt would fail of them; not even a folder for the run is made."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (temporary / "CLAUDE.md").write_text("evil")
    for command in ("run", "triggers"):
        refused = trunchray.refused("skills", command, *without_json(project.options("--pool", "local")))
        assert f"coding tools would read {temporary}/CLAUDE.md as instructions" in " ".join(refused.split())
    assert not Path(project.out).exists()


def without_json(options: list[object]) -> list[object]:
    return [option for option in options if option != "--json"]


def test_what_nobody_named_is_told_before_it_is_used(project: SkillProject, trunchray: CommandLine):
    """The file of cases, and a command that the project records, with where; --quiet says neither."""
    custom = project.folder / "_bmad" / "custom" / "bmad-eval.toml"
    custom.parent.mkdir(parents=True)
    custom.write_text(
        f"[workflow.harness]\ncommand = {json.dumps(json.loads(project.harness.read_text())['command'])}\n"
    )
    loud = [option for option in project.options("--pool", "local", harness=False) if option != "--quiet"]
    for command, file in (("run", "cases.json"), ("triggers", "triggers.json")):
        said = trunchray("skills", command, *loud).err.splitlines()
        assert said[0] == f"taking {project.skill / 'evals' / file}"
        assert said[1].startswith("[workflow.harness] of _bmad/custom/bmad-eval.toml runs ")
        assert "{prompt}" in said[1]
        assert trunchray("skills", command, *loud, "--quiet").err == ""


def test_a_baseline_and_a_variant(pool: str, project: SkillProject, trunchray: CommandLine):
    """Every config has all cases, and a skill of its own, or none."""
    other = project.folder / "next"
    project.write_skill(other)
    assert trunchray("skills", "run", *project.options("--mode", "baseline", "--pool", pool)).code == 0
    variant = ("--mode", "variant", "--variant-path", other)
    done = trunchray("skills", "run", *project.options(*variant, "--pool", pool))
    assert (done.code, [each["config"] for each in done.json["results"]]) == (
        0,
        ["skill", "skill", "variant", "variant"],
    )
    bare, compared = (Store(f"{project.out}/{name}") for name in project.runs())
    assert json.loads(bare.read("bare/first/timing.json"))["tool_calls"] == {}
    assert json.loads(bare.read("skill/first/timing.json"))["tool_calls"] == {"Skill": 1, "Write": 1}
    assert json.loads(compared.read("variant/first/timing.json"))["tool_calls"] == {"Skill": 1}
    trees = json.loads(compared.read("run.json"))["skill_trees"]
    assert trees["skill"] != trees["variant"]


@pytest.mark.parametrize(
    ("pool", "place", "how"),
    [("local", "disk", signal.SIGTERM), ("local", "s3", signal.SIGKILL), ("ray", "disk", signal.SIGKILL)],
    indirect=["place"],
)
def test_an_interrupted_run_adds_only_what_is_missing(
    pool: str, place: str, how: signal.Signals, here: Path, request: pytest.FixtureRequest
):
    """The same command goes on in the same folder; of what was complete every byte stays, and nothing runs twice."""
    project, gate = SkillProject(here / "project", place), here / "gate"
    quick = [case(f"quick-{number}", {"pid": "pid"}) for number in range(4)]
    project.cases(*quick, case("slow", {"pid": "pid"}, {"await": str(gate)}))
    address = ["--address", request.getfixturevalue("ray_cluster").address] if pool == "ray" else []
    options = [*project.options("--mode", "baseline", "--pool", pool), *address]
    command = [sys.executable, "-m", "trunchray.cli.main", "skills", "run", *map(str, options)]

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while len(timings(project)) < 4:
            assert first.poll() is None
            threading.Event().wait(0.1)  # it is another process: there is nothing to wait on but its files
        first.send_signal(how)
        assert first.wait(60) == (3 if how == signal.SIGTERM else -signal.SIGKILL)
    before = complete(project.run())
    gate.touch()

    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    after = complete(project.run())
    assert (len(before) < len(after), len(after)) == (True, 10)
    assert {folder: after[folder] for folder in before} == before
    assert json.loads(done.stdout)["executed"] == 10


def timings(project: SkillProject) -> list[str]:
    return [path for path in Store(project.out).find() if path.endswith("timing.json")]


IN_THE_WAY = """
import pathlib
if not pathlib.Path("{marker}").exists():
    (attempt,) = pathlib.Path("{out}").glob("*/skill/first")
    attempt.rename("{marker}")
    attempt.write_text("in the way")
"""


def test_an_attempt_that_could_not_be_kept_is_run_again(project: SkillProject, trunchray: CommandLine, here: Path):
    """Its place failed: it is an exception in the summary, exit code 1; the same command runs it, and only it."""
    code = IN_THE_WAY.format(marker=here / "moved", out=project.out)
    project.use({"command": [sys.executable, "-c", code, "{prompt}"]})
    command = ("skills", "run", *project.options("--pool", "local"))
    first = trunchray(*command)
    kept, lost = sorted(first.json["results"], key=lambda result: result["status"], reverse=True)
    assert (first.code, first.json["not_kept"], kept["status"], lost["status"]) == (1, 1, "ok", "exception")
    assert lost["error_tail"].startswith("skill/first: ")
    run = Path(project.run().uri)
    (run / "skill" / "first").unlink()
    before = complete(project.run())
    again = trunchray(*command)
    assert (again.code, again.json["executed"]) == (0, 2)
    after = complete(project.run())
    assert {folder: after[folder] for folder in before} == before
    assert set(after) - set(before) == {"skill/first"}


def test_a_run_that_has_ended_is_not_gone_on_with(project: SkillProject, trunchray: CommandLine):
    """The same command makes another folder then, and leaves the first as it was."""
    command = ("skills", "run", *project.options("--pool", "local"))
    first = trunchray(*command).json
    before = {path: project.run().read(path) for path in project.run().find()}
    assert trunchray(*command).json["run_id"] != first["run_id"]
    assert len(project.runs()) == 2
    kept = Store(f"{project.out}/{first['run_id']}")
    assert {path: kept.read(path) for path in kept.find()} == before


@TWO
def test_grading_by_a_model(pool: str, anywhere: SkillProject, trunchray: CommandLine, here: Path):
    """Rubric lines become checks; grades are in the attempt's folder, in the summary and in the rows."""
    anywhere.cases(case("first", rubric=["it is good", "it is short"]))
    reply = {
        "expectations": [
            {"text": "it is good", "passed": True, "evidence": "out/a.txt says one"},
            {"text": "it is short", "passed": False, "evidence": "nothing says so"},
        ]
    }
    models = {"models": [{"id": "mock/script", "mock": {"script": [{"text": json.dumps(reply)}]}}]}
    (here / "grader.yaml").write_text(json.dumps(models))
    done = trunchray("skills", "run", *anywhere.options("--grader", "grader.yaml", "--pool", pool))
    assert (done.code, done.err) == (0, "")
    (result,) = done.json["results"]
    assert result["grading"] == {"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5}
    kept = json.loads(anywhere.run().read("skill/first/grading.json"))
    assert (kept["expectations"], kept["summary"]["pass_rate"]) == (reply["expectations"], 0.5)
    (row,) = rows(anywhere, trunchray)
    assert (row["outcome"], float(row["score"])) == ("failed", 0.5)
    assert list(json.loads(row["details"])["checks"]) == ["rubric-1", "rubric-2"]


def test_an_attempt_that_cannot_be_graded(pool: str, project: SkillProject, trunchray: CommandLine, here: Path):
    """Is no verdict but a grading error, exit code 1; the same command asks the grader again, and nobody else."""
    project.cases(case("first"), case("second", {"pid": "pid"}))
    mended = here / "mended"
    refuses = f"if rubric[0].startswith('second') and not pathlib.Path({str(mended)!r}).exists(): exit('not now')"
    grader = project.grader(f"{refuses}\n{GRADES}")
    command = ("skills", "run", *project.options("--grader-harness", grader, "--pool", pool))
    done = trunchray(*command)
    assert done.code == 1
    first, second = done.json["results"]
    assert (first["grading"]["pass_rate"], first["grading_error"]) == (1.0, None)
    assert (second["status"], second["grading"]) == ("ok", None)
    assert "the grader did not end well: exit code 1; it said last: not now" in second["grading_error"]
    assert [done.json[key] for key in ("executed", "failures", "grading_errors")] == [2, 0, 1]
    run = project.run()
    assert json.loads(run.read("skill/second/grading-error.json"))["status"] == "grading_error"
    assert not run.exists("skill/second/grading.json")
    assert [row["outcome"] for row in rows(project, trunchray)] == ["passed", "error"]
    before = complete(run)

    mended.touch()
    again = trunchray(*command)
    assert again.code == 0, again.out
    assert (again.json["run_id"], again.json["grading_errors"]) == (done.json["run_id"], 0)
    assert again.json["results"][1]["grading"] == {"passed": 0, "failed": 1, "total": 1, "pass_rate": 0.0}
    assert complete(project.run()) == before
    assert json.loads(project.run().read("execution-summary.json")) == again.json


def test_attempts_that_failed_are_not_graded(project: SkillProject, trunchray: CommandLine):
    """Nobody is asked about them, and they are no grading errors."""
    project.cases(case("first", {"exit": 1}))
    done = trunchray("skills", "run", *project.options("--grader-harness", project.grader(GRADES), "--pool", "local"))
    assert (done.code, done.json["failures"], done.json["grading_errors"]) == (1, 1, 0)
    assert not any("grading" in path for path in files(project.run()))


def test_a_grader_that_cannot_be_asked(project: SkillProject, trunchray: CommandLine, here: Path):
    """No such command, no key, nobody who listens: found out before there is a run folder; exit code 2."""
    grader = here / "grader.json"
    grader.write_text(json.dumps({"command": ["no-such-grader", "{prompt}"]}))
    options = [option for option in project.options("--pool", "local") if option != "--json"]
    assert "'no-such-grader' is not on this machine" in trunchray.refused(
        "skills", "run", *options, "--grader-harness", grader
    )
    assert "OPENAI_API_KEY" in trunchray.refused("skills", "run", *options, "--grader", "openai/gpt-4o-mini")
    both = ("--grader", "mock/echo", "--grader-harness", grader)
    assert "only one of them grades" in trunchray.refused("skills", "run", *options, *both)


def test_other_commands_take_the_run_folder(anywhere: SkillProject, trunchray: CommandLine):
    """report, status, compare, gate, export, aggregate and retry read a skill run like any other."""
    grader = anywhere.grader(GRADES)
    ran = trunchray("skills", "run", *anywhere.options("--mode", "baseline", "--grader-harness", grader, "--runs", 3))
    assert ran.code == 0
    run = anywhere.run().uri
    before = complete(anywhere.run())
    report = trunchray("report", run, "--json").json
    assert [(each["name"], each["passed"], each["failed"]) for each in report["models"]] == [
        ("skill", 3, 3),
        ("bare", 3, 3),
    ]
    assert trunchray("status", run, "--json").json["state"] == "complete"
    compared = trunchray("compare", run, "--models", "bare", "skill")
    assert (compared.code, "skill against bare" in compared.out) == (0, True)
    gate = trunchray("gate", run, "--allow", "overall=min_pass_rate:0.99", "--json")
    assert gate.code in (1, 3)
    missed = trunchray("gate", run, "--allow", "each=0")
    assert (missed.code, "\n      second\n" in missed.out) == (1, True)
    assert len(rows(anywhere, trunchray)) == 12
    assert trunchray("skills", "aggregate", "--runs", f"{run}/skill").json["runs"] == 6
    assert "no case 'c9'" in trunchray("view", run, "--case", "c9").err
    assert "nothing to retry" in trunchray("retry", run).err
    assert complete(anywhere.run()) == before


@TWO
def test_a_triggers_run(pool: str, anywhere: SkillProject, trunchray: CommandLine):
    """Queries are told apart by their number alone, runs count from 0; whatever the rates are, the exit code is 0."""
    anywhere.queries((LOADS, True), ("Sum up the taxes.", True), ("Sum up the taxes.", True))
    done = trunchray("skills", "triggers", *anywhere.options("--runs-per-query", 2, "--pool", pool))
    assert done.code == 0
    (name,) = anywhere.runs()
    assert re.fullmatch(r"\d{8}-\d{6}-elephants-triggers", name)
    run = anywhere.run()
    names = {re.sub(r"elephants-trig-[0-9a-f]{8}", "SKILL", path) for path in files(run)}
    assert names == {"run.json", "triggers-result.json"} | {
        f"queries/q00{query}-r{number}/{file}"
        for query in range(3)
        for number in range(2)
        for file in (PLAIN - {"case.json"}) | {"cwd/.agents/skills/SKILL/SKILL.md"}
    }
    assert done.json == json.loads(run.read("triggers-result.json"))
    assert [(each["trigger_rate"], each["triggers"], each["runs"], each["pass"]) for each in done.json["results"]] == [
        (1.0, 2, 2, True),
        (0.0, 0, 2, False),
        (0.0, 0, 2, False),
    ]
    assert done.json["summary"] == {"total": 3, "passed": 1, "failed": 2, "unmeasured": 0}
    assert (done.json["settled"], done.json["status"]) == (False, "completed")
    about = json.loads(run.read("run.json"))
    told = {
        "skill_name",
        "description",
        "harness",
        "command",
        "started_at",
        "query_count",
        "runs_per_query",
        "threshold",
    }
    assert told <= set(about)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", about["started_at"])
    timing = json.loads(run.read("queries/q000-r1/timing.json"))
    assert (timing["loaded"], timing["status"]) == (True, "ok")


def test_a_query_that_could_not_be_measured(project: SkillProject, trunchray: CommandLine):
    """One failed run of three is enough: the query is neither passed nor failed, and the exit code 1."""
    failing = "import sys; print('hm'); sys.exit('home' in sys.argv[1])"
    project.use({"command": [sys.executable, "-c", failing, "{prompt}"]})
    project.queries(("Sum up the taxes.", False), ("Go home.", False))
    done = trunchray("skills", "triggers", *project.options("--pool", "local"))
    assert done.code == 1
    assert [each["pass"] for each in done.json["results"]] == [True, None]
    assert done.json["results"][1]["errors"] == ["error: exit code 1"] * 3
    assert done.json["summary"] == {"total": 2, "passed": 1, "failed": 0, "unmeasured": 1}


def test_triggers_of_a_tool_that_says_nothing(project: SkillProject, trunchray: CommandLine):
    """No query is measured, for a reason that people are told; exit code 1, and no case passes or fails."""
    project.use({"command": ["true", "{prompt}"]})
    options = [option for option in project.options("--pool", "local", "--runs-per-query", 1) if option != "--json"]
    done = trunchray("skills", "triggers", *options)
    assert done.code == 1
    assert "0 of 2 as they should be, 0 not, 2 not measured" in done.out
    assert "2 × it printed nothing" in done.out
    (skill,) = trunchray("report", project.run().uri, "--json").json["models"]
    assert [(each["kind"], each["count"]) for each in skill["errors"]] == [("harness/silent", 2)]
    assert (skill["passed"], skill["failed"]) == (0, 0)


def test_triggers_without_a_harness(project: SkillProject, trunchray: CommandLine):
    """Nothing is measured; exit code 3."""
    done = trunchray("skills", "triggers", *project.options("--pool", "local", harness=False))
    assert done.code == 3
    assert (done.json["status"], done.json["summary"]["unmeasured"]) == ("skipped", 2)
    assert {each["pass"] for each in done.json["results"]} == {None}


def test_what_people_see(project: SkillProject, trunchray: CommandLine):
    """A line for each config, what went wrong, and where it is kept."""
    project.cases(case("first"), case("bad", {"stderr": "it broke\n"}, {"exit": 2}))
    options = [option for option in project.options("--pool", "local") if option != "--json"]
    done = trunchray("skills", "run", *options)
    assert re.search(r"^skill +2 +1 +1 +– ", done.out, flags=re.M)
    assert "skill/bad: error: exit code 2: it broke" in done.out
    assert f"run folder  {project.run().uri}" in done.out
    shown = trunchray("skills", "triggers", *options).out
    assert "2 of 2 as they should be, 0 not\n" in shown


def test_attempts_that_behave_badly():
    """Two of each that leave processes, pipes and links, print 50 MB, are deaf or fail, with a SIGKILL among them."""
    script = ROOT / "benchmarks" / "chaos" / "skills.py"
    command = [sys.executable, str(script), "--attempts", "16", "--workers", "8", "--pool", "local"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("all as it has to be: 16 attempts on local, at most ")

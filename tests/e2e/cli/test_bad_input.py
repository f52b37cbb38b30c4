"""Bad input, for every command that can meet it: one clear message, exit 2, nothing written."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from support.commands import CommandLine, edit
from support.releases import make_release
from trunchray.adapters.releases import StoredRelease

ECHO = "models: [{id: mock/echo}]"


@pytest.fixture
def nothing(here: Path) -> None:
    """What people name by mistake: a file, an empty folder, and the sources of a benchmark."""
    (here / "file.txt").write_text("text")
    (here / "empty").mkdir()
    (here / "benchmark" / "evals").mkdir(parents=True)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("nope", "No such command 'nope' (see `trunchray --help`)"),
        ("staus x", "No such command 'staus'. Did you mean 'status'? (see `trunchray --help`)"),
        ("run", "Missing argument 'CONFIG|RELEASE|PATH' (see `trunchray run --help`)"),
        ("run x --bogus", "No such option: --bogus"),
        ("run x y", "unexpected extra argument(s) (y) (see `trunchray run --help`)"),
        ("run x --attempts 0", "'--attempts': must be greater than or equal to 1 (got '0')"),
        (
            "run x --sample many",
            "'--sample': must be a valid integer, unable to parse string as an integer (got 'many')",
        ),
        ("run x --pool moon", "'--pool': 'moon' is not one of 'auto', 'local', 'ray' (see `trunchray run --help`)"),
        ("run x --model", "Option '--model' requires an argument"),
        ("mock-server --port 99999", "'--port': must be less than or equal to 65535 (got '99999')"),
        ("mock-server --model gpt", "'--model': 'gpt' is not one of 'mock/echo', 'mock/replay', 'mock/script'"),
    ],
)
def test_bad_arguments(argv: str, message: str, trunchray: CommandLine):
    """What is wrong with the arguments is said in one line, which names the help to read."""
    said = trunchray.refused(*argv.split())
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("init file.txt", "'file.txt' exists and is not an empty folder; choose another name"),
        ("init .", "'.' exists and is not an empty folder"),
        ("init file.txt/new", "cannot write 'file.txt/new'"),
        ("compile nope", "'nope' does not exist; give a benchmark's directory or its config file"),
        (
            "compile file.txt",
            "'file.txt' is not a benchmark config; give a directory, or a file named benchmark.config",
        ),
        ("compile empty --config x.ts", "--config 'x.ts': there is no such file in 'empty'"),
        ("compile empty --config ../x.ts", "--config '../x.ts' must be a relative path inside 'empty'"),
        ("compile empty --out file.txt", "file.txt' is not a folder; choose another place"),
        ("compile empty --out file.txt/x", "file.txt' is not a folder; choose another place"),
        ("compile empty --out moon://x", "cannot open 'moon://x'"),
        ("inspect nope", "'nope' does not exist"),
        ("inspect file.txt", "'file.txt' is not a benchmark config"),
        ("inspect memory://nope", "no release at 'memory:///nope': it holds no release.json; give the folder that"),
        ("inspect moon://x", "cannot open 'moon://x': Protocol not known: moon; give a path or a URI such as s3://"),
        ("verify nope", "nope is not a whole release:\nrelease.json is missing"),
        ("verify file.txt", "file.txt is not a whole release:\nrelease.json is missing"),
        ("verify empty", "empty is not a whole release:\nrelease.json is missing"),
        ("verify benchmark", "'benchmark' is a repository, not a release; `trunchray compile benchmark` makes one\n"),
        ("run nope --model mock/echo", "'nope' is neither a run config (.yaml), nor a release, nor a folder"),
        ("run file.txt --model mock/echo", "'file.txt' is not a benchmark config; give a directory, or a file named"),
        ("run nope.yaml", "no such file: 'nope.yaml'"),
        ("run memory://nope --model mock/echo", "no release at 'memory:///nope'"),
        ("run empty", "which models? Name them with --model, or give a run config instead of 'empty'"),
        ("run empty --model gpt", "--model gpt: model 'gpt' must be written <provider>/<model>"),
        ("run empty --model mock/ecko", "there is no model 'mock/ecko'; did you mean 'mock/echo'?"),
        ("run empty --model moon/x", "model 'moon/x': no endpoint is known for 'moon'. Known are "),
        ("run empty --model mock/echo --run-id a/b", "run_id: may hold a–z, 0–9, '.', '_' and '-', begins with"),
        ("run empty --model mock/echo --run-id ..", "run_id: may hold a–z, 0–9, '.', '_' and '-', begins with"),
        ("run empty --model mock/echo --out file.txt", "file.txt' is not a folder; choose another place"),
        ("status nope", "it holds no run.json; give the folder <out>/<run id>"),
        ("status file.txt", "it holds no run.json; give the folder <out>/<run id>"),
        ("status moon://x", "cannot open 'moon://x'"),
        ("report nope", "it holds no run.json; give the folder <out>/<run id>"),
        ("report empty", "it holds no run.json; give the folder <out>/<run id>"),
        ("mock-server --release nope", "no release at "),
        ("mock-server --model mock/replay", "mock/replay needs --replay FILE"),
        ("mock-server --model mock/script", "mock/script needs --script FILE"),
        ("mock-server --model mock/replay --replay nope", "cannot read the recorded outputs 'nope': No such file"),
        ("mock-server --model mock/replay --replay file.txt", "file.txt:1: not JSON"),
        ("mock-server --model mock/script --script nope", "no such file: 'nope'"),
        ("mock-server --model mock/script --script file.txt", "file.txt:1: mock.script: must be a list (got 'text')"),
        (
            "mock-server --fault rate_limit=1",
            "--fault rate_limit=1: no such kind of fault — did you mean 'rate_limited'",
        ),
        ("mock-server --fault timeout", "--fault timeout: give a share from 0 to 1, for example timeout=0.1"),
        ("mock-server --fault timeout=2", "mock.faults.timeout: must be less than or equal to 1 (got 2.0)"),
    ],
)
def test_bad_places(argv: str, message: str, nothing: None, trunchray: CommandLine):
    """A path, a URI or a name that cannot be meant is named, with what to give instead."""
    assert message in trunchray.refused(*argv.split())


def test_empty_arguments(nothing: None, trunchray: CommandLine):
    """An unset shell variable is no working directory."""
    assert "which models? " in trunchray.refused("run", "", "--model", "mock/echo")
    assert "must be 1 to 200 printable characters" in trunchray.refused("run", "empty", "--model", "")
    assert "run_id: may hold a–z" in trunchray.refused("run", "empty", "--model", "mock/echo", "--run-id", "")


def test_a_port_that_is_taken(trunchray: CommandLine):
    """Two servers on one port: the second says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = trunchray.refused("mock-server", "--port", port)
    assert f"cannot listen on 127.0.0.1:{port}: " in said
    assert "choose another port, or 0" in said


def flipped(release: StoredRelease, name: str) -> Path:
    """The folder of a release whose file `name` has one bit changed."""
    folder = Path(release.uri)
    edit(folder / name, lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    return folder


@pytest.mark.parametrize(
    "argv", ["verify R", "inspect R", "inspect R --cases", "run R --model mock/echo", "mock-server --release R"]
)
def test_a_release_whose_cases_were_changed(argv: str, release: StoredRelease, trunchray: CommandLine):
    """One flipped bit in a case: nobody runs it, everybody names the file and both hashes."""
    folder = flipped(release, "cases.jsonl")
    said = trunchray.refused(*(str(folder) if word == "R" else word for word in argv.split()))
    assert "cases.jsonl in " in said
    assert "was changed after it was compiled: its SHA-256 is " in said


@pytest.mark.parametrize("argv", ["verify R", "inspect R", "run R --model mock/echo", "mock-server --release R"])
def test_a_release_whose_manifest_was_changed(argv: str, release: StoredRelease, trunchray: CommandLine):
    """Another title in the manifest is noticed as well."""
    folder = Path(release.uri)
    edit(folder / "release.json", lambda content: content.replace(b'"Test"', b'"Rest"'))
    said = trunchray.refused(*(str(folder) if word == "R" else word for word in argv.split()))
    assert "release.json" in said
    assert "was changed after it was compiled" in said


def test_a_release_whose_grader_was_changed(here: Path, trunchray: CommandLine):
    """`verify` looks at the code of custom evaluators too, and at what does not belong there."""
    stored = make_release(here / "releases", 2, evaluator=b"export default { evaluate: () => true }")
    module = next((Path(stored.uri) / "modules").iterdir())
    flipped(stored, f"modules/{module.name}")
    (module.parent / "extra.mjs").write_text("")
    said = trunchray.refused("verify", stored.uri)
    assert f"modules/{module.name} in " in said
    assert "modules/extra.mjs does not belong to the release" in said


def test_a_whole_release(release: StoredRelease, trunchray: CommandLine):
    """`verify` of what was not touched."""
    assert trunchray("verify", release.uri).out == f"{release.uri}: whole\n"
    assert trunchray("verify", release.uri, "--json").json == {"release": release.uri, "ok": True}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "run.yaml: a run config is a mapping with the keys release and models"),
        ("release: R\nmodels: [", "run.yaml:2: not YAML: expected the node content"),
        ("release: R\nmodels:\n\t- id: mock/echo", "run.yaml:3: not YAML: found character '\\t'"),
        (f"release: R\n{ECHO}\nrelaese: R", "run.yaml:3: relaese: unknown key — did you mean 'release'?"),
        (f"release: R\n{ECHO}\n{ECHO}", "run.yaml:3: the key 'models' stands on line 2 too; keep one"),
        ("release: R\nmodels: [{id: mock/ecko}]", "run.yaml:2: models[0]: there is no model 'mock/ecko'; did you mean"),
        (
            "release: R\nmodels: [{id: moon/x}]",
            "run.yaml:2: models[0]: model 'moon/x': no endpoint is known for 'moon'",
        ),
        ("release: R\nmodels: [{id: openai/x}]", "needs a key: set the environment variable OPENAI_API_KEY"),
        (
            "release: R\nmodels: [{id: mock/replay, mock: {replay: nope.jsonl}}]",
            "cannot read the recorded outputs '",
        ),
        (f"release: R\n{ECHO}\nselect: {{evals: [evn]}}", "select.evals: the release has no eval 'evn' — did you mean"),
        (f"release: R\n{ECHO}\nselect: {{cases: [c11]}}", "select.cases: the release has no case 'c11' — did you mean"),
        (f"release: R\n{ECHO}\nselect: {{evals: [even], cases: [c1]}}", "the selection leaves no case to run; widen"),
        (f"release: R\n{ECHO}\nselect: {{evals: []}}", "the selection leaves no case to run; widen"),
        (f"release: nope\n{ECHO}", "nope' is neither a run config (.yaml), nor a release, nor a folder"),
        (f"release: R\nout: run.yaml\n{ECHO}", "run.yaml' is not a folder; choose another place"),
        (
            "release: R\nmodels: [{id: mock/echo, name: a}, {id: mock/echo, name: b}]",
            "models 'a' and 'b' are the same model with the same parameters; remove one, or raise attempts",
        ),
    ],
)
def test_bad_run_configs(config: str, message: str, here: Path, release: StoredRelease, trunchray: CommandLine):
    """Nothing of a run is begun before all of its config is known to be possible."""
    (here / "run.yaml").write_text(config.replace("R", release.uri))
    assert message in trunchray.refused("run", "run.yaml")


def test_a_model_that_the_config_does_not_have(here: Path, release: StoredRelease, trunchray: CommandLine):
    """`--model` with a config chooses among its models."""
    (here / "run.yaml").write_text(f"release: {release.uri}\nmodels: [{{id: mock/echo, name: echo}}]")
    said = trunchray.refused("run", "run.yaml", "--model", "ecko")
    assert "--model ecko: the run config has no such model — did you mean 'echo'?" in said


def test_a_base_url_that_nobody_answers(here: Path, release: StoredRelease, trunchray: CommandLine):
    """A server that is not there is noticed before the first trial; so is a host that does not exist."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        config = f"release: {release.uri}\nmodels: [{{id: local/m, base_url: 'http://127.0.0.1:{port}/v1'}}]"
        (here / "run.yaml").write_text(config)
        said = trunchray.refused("run", "run.yaml")
    assert f"model 'local/m': nobody answers at http://127.0.0.1:{port}/v1 (Connection refused); start the" in said
    (here / "run.yaml").write_text(config.replace("127.0.0.1", "no-such-host.invalid"))
    assert "nobody answers at http://no-such-host.invalid" in trunchray.refused("run", "run.yaml")


def test_a_run_is_no_release(here: Path, release: StoredRelease, trunchray: CommandLine):
    """A run's folder, a folder of runs and a release are not taken for each other."""
    trunchray("run", release.uri, "--model", "mock/echo", "--run-id", "one")
    trunchray("run", release.uri, "--model", "mock/echo", "--run-id", "two")
    said = trunchray.refused("run", "runs/one", "--model", "mock/echo")
    assert "'runs/one' is a run; to continue it, give the config that it was started with" in said
    assert "it holds no run.json; the runs in it are one, two" in trunchray.refused("status", "runs")
    assert "it holds no run.json" in trunchray.refused("report", release.uri)


@pytest.fixture
def broken(here: Path) -> Path:
    """A benchmark with a syntax error, an unknown field, two cases with one id and an empty prompt."""
    evals = here / "broken" / "evals"
    evals.mkdir(parents=True)
    grade = 'evaluate: { kind: "non_empty" }'
    (evals / "a.ts").write_text("export default {")
    (evals / "b.ts").write_text(f'export default {{ id: "b", prompt: "p", promt: "p", {grade} }};')
    (evals / "c.ts").write_text(f'export default {{ id: "c", cases: "./c.jsonl", {grade} }};')
    (evals / "c.jsonl").write_text(
        '{"id":"one","prompt":"p"}\n{"id":"one","prompt":"q"}\n{"id":"two","prompt":"  "}\nnope\n'
    )
    return evals.parent


@pytest.mark.parametrize("argv", ["compile broken", "inspect broken --cases", "run broken --model mock/echo"])
def test_a_broken_benchmark(argv: str, broken: Path, trunchray: CommandLine):
    """Whatever command meets it, every mistake is listed with its file and line, and nothing is written."""
    said = trunchray.refused(*argv.split()).splitlines()
    assert said[0].startswith(f"error: {len(said) - 1} problems, nothing was written; more may show once")
    for place in ("evals/a.ts:1:", "evals/b.ts: promt: ", "evals/c.jsonl:3: prompt: ", "evals/c.jsonl:4: "):
        assert any(line.startswith(place) for line in said[1:]), said


def test_the_parts_of_problems(broken: Path, trunchray: CommandLine):
    """Programs get each problem in parts."""
    problems = trunchray("compile", "broken", "--json").json["error"]["problems"]
    assert {"path", "row", "field", "message"} == set(problems[0])
    assert ("evals/c.jsonl", 4) in {(problem["path"], problem["row"]) for problem in problems}


def test_the_25_001st_case(here: Path, trunchray: CommandLine):
    """A benchmark that is too large is refused as a whole."""
    evals = here / "big" / "evals"
    evals.mkdir(parents=True)
    (evals / "a.ts").write_text('export default { id: "a", cases: "./a.jsonl", evaluate: { kind: "non_empty" } };')
    (evals / "a.jsonl").write_text("".join(f'{{"id":"a.{n}","prompt":"p"}}\n' for n in range(25_001)))
    outcome = trunchray("compile", "big")
    assert outcome.code == 2
    assert "25,001 cases are too many; a release holds at most 25,000" in outcome.err
    assert not (here / "releases").exists()


def test_a_damaged_release_is_not_compiled_over(here: Path, trunchray: CommandLine):
    """Compiling where a damaged copy stands names the damage and leaves it for people to look at."""
    shutil.copytree(Path(__file__).parents[2].parent / "benchmarks" / "support-policy", here / "policy")
    folder = Path(trunchray("compile", "policy", "--json").json["release"])
    edit(folder / "cases.jsonl", lambda content: content[:-1])
    said = trunchray.refused("compile", "policy")
    assert "holds a damaged copy of this release: cases.jsonl in " in said
    assert "Remove the folder and compile again" in said

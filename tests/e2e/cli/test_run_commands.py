"""run, status and report, as people and programs meet them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import CommandLine, edit
from support.provider import CountingProvider
from support.releases import make_release
from trunchray.adapters.releases import StoredRelease

HOSTILE = "[red]x[/red] :smile: größer"


@pytest.fixture
def config(here: Path, release: StoredRelease) -> dict[str, Any]:
    """A run of eight cases in shards of four."""
    return {"release": release.uri, "run_id": "r", "shard_size": 4, "models": [{"id": "mock/echo", "name": "echo"}]}


def write(config: dict[str, Any], **changes: Any) -> Path:
    path = Path("run.yaml")
    path.write_text(yaml.safe_dump(config | changes, allow_unicode=True), encoding="utf-8")
    return path


def model(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": "mock/echo", "name": name} | fields


def test_what_other_tools_rely_on(config: dict[str, Any], trunchray: CommandLine):
    """`run --json` and `report --json` give one value with these keys, and agree."""
    outcome = trunchray("run", write(config), "--json")
    assert outcome.code == 0, outcome.err
    value = outcome.json
    assert {"run", "release_digest", "complete", "models"} <= value.keys()
    assert (value["run"], value["complete"]) == ("r", True)
    (echo,) = value["models"]
    keys = "name agent_digest planned passed failed error not_run pass_rate mean_score usage cost_usd"
    assert set(keys.split()) <= echo.keys()
    assert (echo["name"], echo["planned"], echo["passed"], echo["pass_rate"]) == ("echo", 8, 8, 1.0)
    again = trunchray("report", "runs/r", "--json")
    assert again.code == 0
    assert again.json["models"] == value["models"]
    assert again.json["uri"] == value["uri"] == str(Path("runs/r").resolve())


def test_what_compiling_gives(here: Path, trunchray: CommandLine):
    """`compile --json` gives the release and what is in it; what was compiled can be inspected, verified and run."""
    assert trunchray("init", "mine").code == 0
    value = trunchray("compile", "mine", "--json").json
    assert {"release", "digest", "title", "version", "cases", "evals"} <= value.keys()
    assert value["cases"] == sum(entry["cases"] for entry in value["evals"]) > 0
    assert trunchray("verify", value["release"]).code == 0
    inspected = trunchray("inspect", value["release"], "--cases", "--json").json
    assert inspected["digest"] == value["digest"]
    assert len(inspected["case_list"]) == value["cases"]
    assert trunchray("inspect", "mine", "--json").json["digest"] == value["digest"]
    run = trunchray("run", "mine", "--model", "mock/echo", "--json").json
    assert (run["release_digest"], run["complete"]) == (value["digest"], True)


def test_words_are_no_markup(here: Path, trunchray: CommandLine):
    """Titles and names are printed as they are, by every command."""
    stored = make_release(here / "releases", 2, title=HOSTILE)
    path = write({"release": stored.uri, "run_id": "r", "models": [model(HOSTILE)]})
    assert HOSTILE in trunchray("inspect", stored.uri).out
    out = trunchray("run", path).out
    assert f"{HOSTILE}  (run r)\n" in out
    assert out.count(HOSTILE) == 3  # the title, the row, and why its cost is unknown
    assert HOSTILE in trunchray("status", "runs/r").out
    assert HOSTILE in trunchray("report", "runs/r").out
    assert trunchray("run", path, "--json").json["title"] == HOSTILE
    unknown = trunchray.refused("run", path, "--model", "[blue]")
    assert f"--model [blue]: the run config has no such model; known: {HOSTILE}, mock/echo" in unknown


def test_names_of_cases_and_evals_are_no_markup(here: Path, trunchray: CommandLine):
    """A prompt is shown as it is when cases are listed."""
    (here / "b" / "evals").mkdir(parents=True)
    (here / "b" / "evals" / "a.ts").write_text(
        'export default { id: "a", prompt: "[red]p[/red] \\u001b[2J :smile:", evaluate: { kind: "non_empty" } };'
    )
    assert r"a  [non_empty]  [red]p[/red] \x1b[2J :smile:" in trunchray("inspect", "b", "--cases").out


def test_choosing_models(config: dict[str, Any], trunchray: CommandLine):
    """`--model` runs only some; the others join later, and nothing is run twice."""
    path = write(config, models=[model("a", mock={"seed": 1}), model("b", mock={"seed": 2})])
    only = trunchray("run", path, "--model", "b", "--json").json
    assert [entry["name"] for entry in only["models"]] == ["b"]
    both = trunchray("run", path, "--json").json
    assert {entry["name"]: entry["passed"] for entry in both["models"]} == {"a": 8, "b": 8}


def test_a_model_that_is_removed_and_comes_back(config: dict[str, Any], trunchray: CommandLine):
    """What was run of a model stays in the report, whether the config still names it or not."""
    with CountingProvider() as provider:
        models = [model("echo"), {"id": "local/m", "name": "m", "base_url": provider.base_url}]
        assert trunchray("run", write(config, models=models)).code == 0
        removed = trunchray("run", write(config, models=models[:1]), "--json").json
        assert [entry["name"] for entry in removed["models"]] == ["echo", "m"]
        assert removed["complete"]
        assert trunchray("run", write(config, models=models[::-1]), "--json").json["complete"]
        assert provider.asked.total() == 8


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"seed": 5}, ["seed was 0 and is now 5"]),
        (
            {"shard_size": 2, "select": {"sample": 4}},
            ["shard_size was 4 and is now 2", "select.sample was None and is"],
        ),
        ({"select": {"evals": ["even"]}}, ["select.evals was None and is now ('even',)"]),
        (
            {"models": [model("echo", params={"a": 1})]},
            ["model 'echo' (give it another name): params.a was None and is"],
        ),
        (
            {"limits": {"max_steps": 1}, "models": [model("echo", mock={"latency": 0.5})]},
            ["limits.max_steps was 10 and is now 1", "mock.latency.p50 was 0.0 and is now 0.5"],
        ),
    ],
)
def test_a_config_that_changed(
    changes: dict[str, Any], differences: list[str], config: dict[str, Any], trunchray: CommandLine
):
    """Another question under the same name is refused with every difference, and the run is not touched."""
    assert trunchray("run", write(config)).code == 0
    said = trunchray.refused("run", write(config, **changes))
    assert "run 'r' exists and asks another question:\n" in said
    for difference in differences:
        assert difference in said
    assert "\nchoose another --run-id to ask it, or go back to the old settings to go on with this run\n" in said


def test_another_release_under_the_same_name(here: Path, config: dict[str, Any], trunchray: CommandLine):
    """A changed benchmark needs another run."""
    assert trunchray("run", write(config)).code == 0
    other = make_release(here / "others", 9)
    said = trunchray.refused("run", write(config, release=other.uri))
    digests = f"was {config['release'][-12:]} and is now {other.release.digest[:12]}"
    assert f"  the benchmark has changed since: its release {digests}\nchoose another --run-id" in said
    assert f"\n`trunchray regrade {here}/runs/r --release {other.uri}` grades the stored answers" in said


def test_more_attempts_extend_a_run(config: dict[str, Any], trunchray: CommandLine):
    """Options replace what the config says, and asking for less again takes nothing away."""
    path = write(config)
    assert trunchray("run", path, "--json").json["planned"] == 8
    assert trunchray("run", path, "--attempts", 3, "--json").json["planned"] == 24
    assert trunchray("run", path, "--json").json["planned"] == 24


def test_a_sample_larger_than_the_release(config: dict[str, Any], trunchray: CommandLine):
    """All cases are run, and the note says that they are."""
    outcome = trunchray("run", write(config), "--sample", 500, "--json")
    assert outcome.json["planned"] == 8
    assert outcome.err == "the sample of 500 holds all 8 cases\n"
    assert trunchray("run", write(config, run_id="s"), "--sample", 3, "--json").json["planned"] == 3


def test_a_recorded_output_that_is_missing(here: Path, config: dict[str, Any], trunchray: CommandLine):
    """It is an error of these trials and no verdict; what was found is kept, and the share decides the exit code."""
    rows = [{"case_id": f"c{number}", "output": "prompt"} for number in range(6)]
    (here / "o.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = [{"id": "mock/replay", "name": "old", "mock": {"replay": "o.jsonl"}}]
    outcome = trunchray("run", write(config, models=models))
    assert outcome.code == 3
    assert "old: 2 × provider/" in outcome.out
    assert "2 of 8 trials ended in an error, which is no verdict on the model (max_error_share is 0)" in outcome.err
    assert "(max_error_share is 0); asking the same again mends none of them" in outcome.err
    retried = trunchray("retry", "runs/r")
    assert (retried.code, "2 that count ended in an error, but with none would asking" in retried.err) == (0, True)
    value = trunchray("report", "runs/r", "--json").json["models"][0]
    assert (value["passed"], value["failed"], value["error"], value["not_run"]) == (6, 0, 2, 0)
    assert trunchray("run", write(config, models=models, max_error_share=0.25)).code == 0


def test_a_provider_that_goes_away(config: dict[str, Any], trunchray: CommandLine):
    """A server that fails during the run costs its trials, not the run."""
    with CountingProvider() as provider:
        provider.failing = {"prompt 3": 500}
        models = [{"id": "local/m", "base_url": provider.base_url, "pacing": {"max_retries": 0}}]
        outcome = trunchray("run", write(config, models=models), "--json")
    assert outcome.code == 3
    assert (outcome.json["passed"], outcome.json["error"], outcome.json["complete"]) == (7, 1, True)
    assert "asks again 1 of them, whose cause may be gone" in outcome.err


def asked_over_http(name: str, provider: CountingProvider, key: str) -> dict[str, Any]:
    """A model behind a server, whose key is in the environment variable `key`."""
    return {"id": "local/m", "name": name, "base_url": provider.base_url, "api_key_env": key}


def test_a_finished_run_needs_neither_key_nor_server(
    config: dict[str, Any], trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """Given again, the command says that the run is complete and where its report is; so does a further model's."""
    monkeypatch.setenv("KEY_OF_A", "sk-a")
    with CountingProvider() as provider:
        first = asked_over_http("a", provider, "KEY_OF_A")
        assert trunchray("run", write(config, models=[first])).code == 0
    monkeypatch.delenv("KEY_OF_A")
    again = trunchray("run", write(config, models=[first]))
    assert again.code == 0, again.err
    assert "complete: all 8 trials are counted already" in again.err
    assert again.out.splitlines()[-1].startswith("report  ")
    assert again.out.endswith("/runs/r/report/report.html\n")
    both = trunchray("run", write(config, models=[first, model("echo")]), "--json")
    assert (both.code, both.json["passed"]) == (0, 16), both.err


def test_only_models_with_trials_to_run_need_their_keys(
    config: dict[str, Any], trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """Of two models whose keys are gone, the one is missed that the command would ask."""
    monkeypatch.setenv("KEY_OF_A", "sk-a")
    with CountingProvider() as provider:
        first = asked_over_http("a", provider, "KEY_OF_A")
        second = asked_over_http("b", provider, "KEY_OF_B") | {"params": {"top_p": 0.5}}
        assert trunchray("run", write(config, models=[first])).code == 0
        monkeypatch.delenv("KEY_OF_A")
        path = write(config, models=[first, second])
        assert "set the environment variable KEY_OF_B where" in trunchray.refused("run", path)
        monkeypatch.setenv("KEY_OF_B", "sk-b")
        assert trunchray("run", path).code == 0


def test_errors_that_are_asked_again_need_their_key(
    config: dict[str, Any], trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """A run with an error that asking again may mend is not finished: without the key it is refused, and untouched."""
    monkeypatch.setenv("KEY_OF_A", "sk-a")
    with CountingProvider() as provider:
        provider.failing = {"prompt 3": 500}
        only = asked_over_http("a", provider, "KEY_OF_A") | {"pacing": {"max_retries": 0}}
        assert trunchray("run", write(config, models=[only])).code == 3
        monkeypatch.delenv("KEY_OF_A")
        assert "set the environment variable KEY_OF_A where" in trunchray.refused("run", "run.yaml")


def test_lost_rows_of_a_finished_run_need_its_key(
    config: dict[str, Any], trunchray: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """Rows that are gone are asked for again; when the key is missing by then, it is named, and the rows stay owed."""
    monkeypatch.setenv("KEY_OF_A", "sk-a")
    with CountingProvider() as provider:
        assert trunchray("run", write(config, models=[asked_over_http("a", provider, "KEY_OF_A")])).code == 0
        next(Path("runs/r").glob("parts/*/*.parquet")).unlink()
        monkeypatch.delenv("KEY_OF_A")
        said = trunchray("run", "run.yaml")
        assert (said.code, "set the environment variable KEY_OF_A where" in said.err) == (3, True), said.err
        monkeypatch.setenv("KEY_OF_A", "sk-a")
        assert trunchray("run", "run.yaml", "--json").json["passed"] == 8


@pytest.fixture
def done(config: dict[str, Any], trunchray: CommandLine) -> Path:
    """The folder of a finished run."""
    assert trunchray("run", write(config)).code == 0
    return Path("runs/r")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "runs/r/run.json is not a run that this version can read"),
        (b"{}", "runs/r/run.json is not a run that this version can read"),
        (b'{"format": 2}', "runs/r/run.json is not a run that this version can read"),
        (b"\xff\x00", "runs/r/run.json is not a run that this version can read"),
    ],
)
def test_a_damaged_question(content: bytes, message: str, done: Path, trunchray: CommandLine):
    """Without its question nobody can say what a run's rows answer: it is neither read nor written over."""
    (done / "run.json").write_bytes(content)
    for argv in (("run", "run.yaml"), ("status", done), ("report", done)):
        assert message in trunchray.refused(*argv)


def test_damaged_notes_do_no_harm(done: Path, trunchray: CommandLine):
    """The lease and the snapshot are only there to help; without them everything goes on."""
    for name in ("lease.json", "progress.json"):
        (done / name).write_bytes(b'{"half": ')
    assert "r: complete" in trunchray("status", done).out
    assert trunchray("report", done).code == 0
    assert trunchray("run", "run.yaml").code == 0


def test_a_damaged_commit_is_named(done: Path, trunchray: CommandLine):
    """What cannot be read is named with what to do; after that the rows are counted again, without asking anybody."""
    commit = next(done.glob("commits/*/1.json"))
    commit.write_bytes(b"{")
    (done / "progress.json").unlink()  # what the driver said last would be enough for a status
    for argv in (("run", "run.yaml"), ("status", done), ("report", done)):
        outcome = trunchray(*argv)
        assert outcome.code == 3
        assert f"{commit.relative_to(done)} is damaged" in outcome.err
        assert "delete it, and its shard is completed from its parts" in outcome.err
    commit.unlink()
    state = trunchray("status", done).out
    assert "r: incomplete\n4 of 8 trials counted\n! nobody drives it" in state
    assert "the same `trunchray run` command continues it" in state
    parts = sorted(done.glob("parts/*/*"))
    assert trunchray("run", "run.yaml", "--json").json["complete"]
    assert sorted(done.glob("parts/*/*")) == parts


def test_what_a_killed_writer_left_is_no_commit(done: Path, trunchray: CommandLine):
    """A half-written file under a name of its own is passed over."""
    folder = next(done.glob("commits/*"))
    (folder / ".2.json.0123456789abcdef").write_bytes(b"{")
    (folder / "notes.txt").write_bytes(b"")
    assert trunchray("status", done).code == 0
    assert trunchray("run", "run.yaml").code == 0


def test_a_damaged_part(done: Path, trunchray: CommandLine):
    """A report says what it cannot count; running again repairs it."""
    part = next(done.glob("parts/*/*.parquet"))
    edit(part, lambda content: content[:-1])
    reported = trunchray("report", done)
    assert "missing or damaged, its trials are not counted; `trunchray run` again" in reported.err
    assert "      4" in reported.out
    repaired = trunchray("run", "run.yaml", "--json")
    assert "missing or damaged, its trials are run again" in repaired.err
    assert (repaired.json["complete"], repaired.json["passed"]) == (True, 8)


def test_a_release_that_is_gone(config: dict[str, Any], done: Path, trunchray: CommandLine):
    """The rows of a run mean nothing without its release: the message says where it was and how to get it back."""
    shutil.move(config["release"], "elsewhere")
    assert "r: complete" in trunchray("status", done).out  # needs only what its driver said last
    said = trunchray.refused("report", done)
    assert f"the release of run 'r' cannot be read: no release at '{config['release']}'" in said
    assert "Put it back; the `trunchray run` command that started the run also compiles it again" in said
    (done / "progress.json").unlink()
    assert "the release of run 'r' cannot be read" in trunchray.refused("status", done)
    moved = write(config, release="elsewhere")
    assert trunchray("run", moved, "--json").json["complete"]
    assert "r: complete" in trunchray("status", done).out


def test_states_for_programs(done: Path, trunchray: CommandLine):
    """`status --json` says what there is, by model."""
    value = trunchray("status", done, "--json").json
    assert (value["run"], value["state"], value["driver"], value["latest"]) == ("r", "complete", None, None)
    (echo,) = value["committed"]["agents"]
    assert (echo["name"], echo["planned"], echo["counts"]["passed"]) == ("echo", 8, 8)

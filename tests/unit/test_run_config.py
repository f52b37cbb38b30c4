"""Run configs: what they mean, and the words in which bad ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.core.agent import Faults, Latency, Limits, Mock, Price, Quota
from trunchray.core.digest import sha256
from trunchray.errors import UsageError
from trunchray.frontends.agents import build_agents, read_recorded
from trunchray.frontends.model_config import ModelConfig, SomeLimits, model_from_id
from trunchray.frontends.run_config import RunConfig, read_run_config

ECHO = "{id: mock/echo}"


def read(folder: Path, content: str) -> RunConfig:
    (folder / "run.yaml").write_text(content, encoding="utf-8")
    return read_run_config(str(folder / "run.yaml"))


def read_model(folder: Path, fields: str) -> ModelConfig:
    """The config of a run's only model."""
    return read(folder, f"release: r\nmodels:\n- {{{fields}}}\n").models[0]


def refused(folder: Path, content: str) -> list[str]:
    """The lines of the refusal, without the path of the config."""
    with pytest.raises(UsageError) as error:
        read(folder, content)
    return str(error.value).replace(f"{folder / 'run.yaml'}:", "").splitlines()


def test_defaults(tmp_path: Path):
    """A release and a model are enough."""
    config = read(tmp_path, f"release: r\nmodels: [{ECHO}]")
    assert (config.attempts, config.seed, config.shard_size, config.pool) == (1, 0, 128, "auto")
    assert (config.out, config.run_id, config.max_error_share) == (None, None, 0)
    assert config.models[0].label == "mock/echo"


def test_paths_are_relative_to_the_config(tmp_path: Path):
    """A config means the same from any working directory; URIs and absolute paths stay as they are."""
    config = read(
        tmp_path,
        "release: ../b\nout: runs\nmodels: [{id: mock/replay, mock: {replay: out/o.jsonl}}, {id: mock/echo}]",
    )
    assert config.release == str(tmp_path / "../b")
    assert config.out == str(tmp_path / "runs")
    assert config.models[0].mock
    assert config.models[0].mock.replay == str(tmp_path / "out/o.jsonl")
    there = read(tmp_path, f"release: s3://bucket/r\nout: /runs\nmodels: [{ECHO}]")
    assert (there.release, there.out) == ("s3://bucket/r", "/runs")
    home = read(tmp_path, f"release: ~/r\nmodels: [{ECHO}]")
    assert home.release == str(Path("~/r").expanduser())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "a run config is a mapping with the keys release and models", id="empty"),
        pytest.param("- release", "a run config is a mapping with the keys release and models", id="a list"),
        pytest.param("just text", "a run config is a mapping with the keys release and models", id="text"),
    ],
)
def test_what_is_no_mapping(content: str, message: str, tmp_path: Path):
    """What is not a run config at all is told what one is."""
    with pytest.raises(UsageError, match=f"run.yaml: {message}"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param("{}", ["1: release: is missing", "1: models: is missing"], id="nothing"),
        pytest.param("release: r\nmodels: []", ["2: models: name at least one model"], id="no model"),
        pytest.param("release: r\nmodels: mock/echo", ["2: models: must be a list (got 'mock/echo')"], id="no list"),
        pytest.param(
            "release: r\nmodels:\n- mock/echo",
            ["3: models[0]: must be a mapping (got 'mock/echo'); write `- id: mock/echo`"],
            id="id",
        ),
        pytest.param(
            "release: r\nparams:\n  temperature: 0\nmodels: [{id: mock/echo}]",
            ["2: params: unknown key; it belongs under a model, beside its id"],
            id="a level too high",
        ),
        pytest.param(
            "release: r\nmodels:\n- id: mock/echo\n  pacing:\n    timeout: 0\n- {id: mock/echo, name: b, nam: c}",
            ["5: models[0].pacing.timeout: must be greater", "6: models[1].nam: unknown key — did you mean 'name'?"],
            id="entries of a list",
        ),
        pytest.param("release: r\nmodels: [{}]", ["2: models[0].id: is missing"], id="no id"),
        pytest.param(
            "release: 7\nmodels: [{id: yes}]",
            ["1: release: must be text, in quotes (got 7)", "2: models[0].id: must be text, in quotes (got True)"],
            id="not text",
        ),
        pytest.param(
            "release: ''\nout: ''\nmodels: [{id: mock/echo}]",
            ["1: release: must not be empty (got '')", "2: out: must not be empty (got '')"],
            id="empty text",
        ),
        pytest.param(
            "release: r\nmodels: [{id: mock/echo}, {id: mock/echo}]",
            ["2: models: 2 models are named 'mock/echo'; give each its own name"],
            id="two models with one name",
        ),
        pytest.param(
            "release: r\nmodels: [{id: mock/echo, name: a}, {id: mock/script, name: a, mock: {script: [{text: x}]}}]",
            ["2: models: 2 models are named 'a'; give each its own name"],
            id="two names",
        ),
    ],
)
def test_bad_shapes(content: str, lines: list[str], tmp_path: Path):
    """Every wrong field is named with its line, its place and its value."""
    found = refused(tmp_path, content)
    assert len(found) == len(lines)
    for line, expected in zip(found, lines, strict=True):
        assert line.startswith(expected)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("attempts: 0", "attempts: must be greater than or equal to 1 (got 0)"),
        ("attempts: 1001", "attempts: must be less than or equal to 1000 (got 1001)"),
        ("attempts: true", "attempts: must be a valid integer (got True)"),
        ("attempts: '3'", "attempts: must be a valid integer (got '3')"),
        ("attempts: 2.5", "attempts: must be a valid integer (got 2.5)"),
        ("attempts: null", "attempts: must be a valid integer (got None)"),
        ("seed: x", "seed: must be a valid integer (got 'x')"),
        ("seed: 99999999999999999999", "99999999999999999999 is too large; integers go up to 9007199254740991"),
        ("shard_size: -5", "shard_size: must be greater than or equal to 1 (got -5)"),
        ("shard_size: 1e9", "shard_size: must be a valid integer (got 1000000000.0)"),
        ("pool: rai", "pool: must be 'auto', 'local' or 'ray' (got 'rai')"),
        ("max_error_share: 2", "max_error_share: must be less than or equal to 1 (got 2)"),
        ("max_error_share: .nan", ".nan cannot be used as a number"),
        ("run_id: a/b", "run_id: may hold a–z, 0–9, '.', '_' and '-', begins with a letter or digit"),
        ("run_id: ../up", "run_id: may hold a–z"),
        ("run_id: Upper", "run_id: may hold a–z"),
        (f"run_id: {'x' * 121}", "has at most 120 characters (got 'xxx"),
        ("select: {sample: 0}", "select.sample: must be greater than or equal to 1 (got 0)"),
        ("select: {evals: a}", "select.evals: must be a list (got 'a')"),
        ("select: {cases: [1]}", "select.cases[0]: must be text, in quotes (got 1)"),
        ("limits: {max_steps: 0}", "limits.max_steps: must be greater than or equal to 1 (got 0)"),
        ("limits: 5", "limits: must be a mapping (got 5)"),
    ],
)
def test_bad_values(field: str, message: str, tmp_path: Path):
    """A value of the wrong type or size is refused with the value, on its line."""
    (line,) = refused(tmp_path, f"release: r\nmodels: [{ECHO}]\n{field}\n")
    assert line.startswith("3: ")
    assert message in line


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("id: gpt-4o", "model 'gpt-4o' must be written <provider>/<model>, for example 'openai/gpt-4o-mini'"),
        ("id: mock/ecko", "there is no model 'mock/ecko'; did you mean 'mock/echo'?"),
        ("id: nope/x", "model 'nope/x': no endpoint is known for 'nope'. Known are "),
        ("id: ' mock/echo'", "models[0].id: must be 1 to 200 printable characters on one line, without blanks"),
        ("id: local/x, base_url: localhost", "base_url 'localhost' is not an address like 'http://localhost:8000/v1'"),
        ("id: local/x, base_url: 'http://h:99999/v1'", "base_url 'http://h:99999/v1' is not an address"),
        ("id: mock/echo, base_url: 'http://h/v1'", "remove base_url 'http://h/v1'"),
        ("id: mock/echo, name: ''", "models[0].name: must be 1 to 200 printable characters"),
        (r'id: mock/echo, name: "a\nb"', "models[0].name: must be 1 to 200 printable characters on one line"),
        (r'id: mock/echo, name: "a\e[31m"', "models[0].name: must be 1 to 200 printable characters on one line"),
        ("id: openai/x, params: {messages: []}", "params may not set messages; for several answers use attempts"),
        ("id: openai/x, params: [1]", "models[0].params: must be a mapping (got [1])"),
        ("id: openai/x, price: {input: 1}", "models[0].price.output: is missing"),
        ("id: openai/x, api_key_env: [A, sk-proj]", "models[0].api_key_env: names an environment variable"),
        ("id: openai/x, api_key_env: [A, A]", "models[0].api_key_env: names a variable twice"),
        ("id: openai/x, api_key_env: 5", "models[0].api_key_env: must be a list (got 5)"),
        ("id: openai/x, transport: http", "models[0].transport: must be 'auto', 'openai' or 'litellm' (got 'http')"),
        ("id: nope/x, transport: litellm", "models[0]: model 'nope/x': litellm knows no provider 'nope'"),
        ("id: azure/x", "models[0]: model 'azure/x' needs the base_url of its resource"),
        ("id: openai/x, api_version: '1'", "models[0]: model 'openai/x': api_version is for models of azure"),
        (
            "id: openai/x, headers: {Authorization: Bearer}",
            "headers are stored with the run, so 'Authorization' may not",
        ),
        ("id: openai/x, headers: {X: 1}", "models[0].headers.X: must be text, in quotes (got 1)"),
        ("id: openai/x, params: {extra_body: {n: 2}}", "params may not set n; for several answers use attempts"),
        ("id: openai/x, params: {extra_body: 2}", "params.extra_body must be a mapping"),
        ("id: openai/x, system_prompt: assistant", "models[0].system_prompt: must be 'system', 'developer' or 'user'"),
        (
            "id: openai/x, price: {input: 1e300, output: 0}",
            "models[0].price.input: must be less than or equal to 1000000",
        ),
        ("id: openai/x, price: {input: -1, output: 0}", "models[0].price.input: must be greater than or equal to 0"),
        ("id: openai/x, pacing: {max_in_flight: 0}", "models[0].pacing.max_in_flight: must be greater than or equal"),
        ("id: openai/x, pacing: {timeout: 0}", "models[0].pacing.timeout: must be greater than 0 (got 0)"),
        ("id: openai/x, limits: {max_tool_calls: -1}", "models[0].limits.max_tool_calls: must be greater than or"),
        ("id: openai/x, mock: {}", "models[0]: model 'openai/x': mock: is only for the models mock/echo"),
        ("id: mock/replay", "models[0]: mock/replay needs mock: {replay: <file of recorded outputs>}"),
        ("id: mock/replay, mock: {seed: 1}", "models[0]: mock/replay needs mock: {replay: <file of recorded"),
        ("id: mock/script", "models[0]: mock/script needs mock: {script: [{text: …}, …]}"),
        ("id: mock/script, mock: {script: [hi]}", "models[0].mock.script[0]: must be a mapping (got 'hi')"),
        ("id: mock/echo, mock: {latency: slow}", "models[0].mock.latency: must be a mapping (got 'slow')"),
        ("id: mock/echo, mock: {latency: -1}", "models[0].mock.latency.p50: must be greater than or equal to 0"),
        ("id: mock/echo, mock: {latency: true}", "models[0].mock.latency: must be a mapping (got True)"),
        ("id: mock/echo, mock: {latency: {p50: 2, p99: 1}}", "latency: p99 (1 s) must be at least p50 (2 s)"),
        ("id: mock/echo, mock: {faults: {timeout: 1.5}}", "mock.faults.timeout: must be less than or equal to 1"),
        ("id: mock/echo, mock: {faults: {timeout: 0.6, malformed: 0.6}}", "the shares add up to 1.2; together"),
    ],
)
def test_bad_models(field: str, message: str, tmp_path: Path):
    """What cannot be asked of a model is refused with the model's line."""
    lines = refused(tmp_path, f"release: r\nmodels:\n- {{{field}}}\n")
    assert lines[0].startswith("3: ")
    assert message in lines[0]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("relaese: r\nrelease: r\nmodels: [E]", "1: relaese: unknown key — did you mean 'release'?"),
        ("release: r\nmodels: [E]\nselect: {eval: [a]}", "3: select.eval: unknown key — did you mean 'evals'?"),
        ("release: r\nmodels: [E]\nlimits: {steps: 1}", "3: limits.steps: unknown key — did you mean 'max_steps'?"),
        (
            "release: r\nmodels:\n- id: mock/echo\n  temperature: 0",
            "4: models[0].temperature: unknown key; known: api_key_env, api_version, base_url, ",
        ),
        ("release: r\nmodels: [{id: openai/x, api_key: sk-1}]", "2: models[0].api_key: unknown key — did you mean"),
        (
            "release: r\nmodels: [{id: openai/x, pacing: {timeuot: 1}}]",
            "2: models[0].pacing.timeuot: unknown key — did",
        ),
        (
            "release: r\nmodels: [{id: openai/x, price: {input: 1, output: 1, cached: 1}}]",
            "2: models[0].price.cached: unknown key — did you mean 'cached_input'?",
        ),
        ("release: r\nmodels: [{id: mock/echo, mock: {fault: {}}}]", "2: models[0].mock.fault: unknown key — did you"),
        (
            "release: r\nmodels: [{id: mock/echo, mock: {faults: {rate_limit: 1}}}]",
            "2: models[0].mock.faults.rate_limit: unknown key — did you mean 'rate_limited'?",
        ),
        (
            "release: r\nmodels: [{id: mock/echo, mock: {latency: {p50: 1, p99: 1, p95: 1}}}]",
            "2: models[0].mock.latency.p95: unknown key — did you mean 'p99'?",
        ),
        (
            "release: r\nmodels: [{id: mock/script, mock: {script: [{txt: a}]}}]",
            "2: models[0].mock.script[0].txt: unknown key — did you mean 'text'?",
        ),
        (
            "release: r\nmodels: [{id: mock/script, mock: {script: [{tool_calls: [{name: t, args: {}}]}]}}]",
            "2: models[0].mock.script[0].tool_calls[0].args: unknown key",
        ),
    ],
)
def test_unknown_keys(content: str, line: str, tmp_path: Path):
    """At every level an unknown key is refused, with the nearest known one or all of them."""
    found = refused(tmp_path, content.replace("[E]", f"[{ECHO}]"))
    assert len(found) == 1
    assert found[0].startswith(line)


def test_a_key_in_the_config_is_not_repeated(tmp_path: Path):
    """Somebody who pastes a key where the name of its variable belongs does not find it in their logs."""
    content = "release: r\nmodels: [{id: openai/x, api_key_env: sk-proj-verysecret}]"
    (line,) = refused(tmp_path, content)
    assert line.startswith("2: models[0].api_key_env: names an environment variable, such as OPENAI_API_KEY")
    assert "secret" not in line


def test_keys_that_stand_twice_are_refused(tmp_path: Path):
    """YAML readers silently take the last one; which one was meant is not for us to guess."""
    lines = refused(tmp_path, f"release: r\nmodels: [{ECHO}]\nrelease: s")
    assert lines == ["3: the key 'release' stands on line 1 too; keep one"]


def test_aliases_share_settings(tmp_path: Path):
    """What several models have in common can be written once."""
    config = read(
        tmp_path,
        "release: r\nmodels:\n"
        "- &first {id: mock/echo, name: a, pacing: &pace {timeout: 9}}\n"
        "- {<<: *first, name: b}\n"
        "- {id: mock/echo, name: c, pacing: *pace}\n",
    )
    assert [(model.name, model.pacing.timeout) for model in config.models] == [("a", 9), ("b", 9), ("c", 9)]


@pytest.mark.parametrize(
    ("written", "latency"),
    [
        ("0.2", Latency(p50=0.2, p99=0.2)),
        ("1", Latency(p50=1, p99=1)),
        ("{p50: 0.1, p99: 2}", Latency(p50=0.1, p99=2)),
    ],
)
def test_latencies(written: str, latency: Latency, tmp_path: Path):
    """A number is a constant latency; two percentiles are a distribution."""
    model = read_model(tmp_path, f"id: mock/echo, mock: {{latency: {written}}}")
    assert model.mock
    assert model.mock.latency == latency


def test_params_are_kept_as_they_are(tmp_path: Path):
    """Whatever JSON a request may hold can be given."""
    model = read_model(tmp_path, "id: openai/x, params: {temperature: 1e-1, stop: [a, null], deep: {er: {x: true}}}")
    assert model.params == {"temperature": 0.1, "stop": ["a", None], "deep": {"er": {"x": True}}}


def test_a_model_limits_over_the_run_over_the_release():
    """Each level replaces only what it names."""
    models = [
        ModelConfig(id="mock/echo", name="own", limits=SomeLimits(max_steps=3)),
        ModelConfig(id="mock/echo", name="none"),
    ]
    own, none = build_agents(
        models,
        {},
        limits=SomeLimits(max_steps=5, max_tool_calls=0),
        release_limits=Limits(max_steps=7, max_tool_calls=7, max_output_tokens=7),
    )
    assert own.limits == Limits(max_steps=3, max_tool_calls=0, max_output_tokens=7)
    assert none.limits == Limits(max_steps=5, max_tool_calls=0, max_output_tokens=7)


def test_mocks_become_agents(tmp_path: Path):
    """A recorded file is named by its hash, so that another file is another agent."""
    content = b'{"case_id": "c", "output": "x"}\n'
    (tmp_path / "o.jsonl").write_bytes(content)
    config = read(
        tmp_path,
        "release: r\nmodels:\n"
        "- {id: mock/replay, mock: {replay: o.jsonl, latency: 1, seed: 4}}\n"
        "- {id: mock/echo, mock: {faults: {timeout: 0.5}}}\n"
        "- {id: mock/echo, name: plain}\n"
        "- {id: local/m, base_url: 'http://h/v1/', params: {top_p: 1}}\n",
    )
    recorded = read_recorded(config.models)
    assert recorded == {str(tmp_path / "o.jsonl"): content}
    replay, echo, plain, local = build_agents(config.models, recorded, limits=SomeLimits(), release_limits=Limits())
    assert replay.mock == Mock(replay=sha256(content), latency=Latency(p50=1, p99=1), seed=4)
    assert echo.mock == Mock(faults=Faults(timeout=0.5))
    assert plain.mock == Mock()
    assert (plain.name, plain.model) == ("plain", "mock/echo")
    assert (local.mock, local.base_url, local.params) == (None, "http://h/v1", {"top_p": 1})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the recorded outputs '.*o.jsonl': No such file or directory"),
        ("", "o.jsonl: no recorded outputs in it"),
        ('{"case_id": "a", "output": "x"}\n{"case_id": "b"}\n', "o.jsonl:2: output: Field required"),
        ('{"case_id": "a", "output": "x"}\nnope\n', "o.jsonl:2: not JSON .*'nope'"),
        ("[1]\n", r"o.jsonl:1: '\[1\]' is not an object"),
        ('{"case_id": "a", "output": "x"}\n{"case_id": "a", "output": "y"}\n', "lines 1 and 2 are both for case 'a'"),
    ],
)
def test_bad_recorded_outputs(content: str | None, message: str, tmp_path: Path):
    """A missing file is named, a bad row with its line."""
    if content is not None:
        (tmp_path / "o.jsonl").write_text(content, encoding="utf-8")
    config = read(tmp_path, "release: r\nmodels: [{id: mock/replay, mock: {replay: o.jsonl}}]")
    with pytest.raises(UsageError, match=message):
        read_recorded(config.models)


def test_models_from_the_command_line():
    """A name is enough where nothing else is needed; otherwise the message says what is."""
    assert model_from_id("mock/echo") == ModelConfig(id="mock/echo")
    with pytest.raises(UsageError, match=r"--model mock/replay: mock/replay needs mock: \{replay: "):
        model_from_id("mock/replay")
    with pytest.raises(UsageError, match="--model gpt: model 'gpt' must be written <provider>/<model>"):
        model_from_id("gpt")


def test_a_run_may_insist_on_walls_around_author_code(tmp_path: Path):
    """`sandbox: {require: landlock}`; nothing is insisted on by default, and other words are refused."""
    config = f"release: r\nmodels: [{ECHO}]\n"
    assert read(tmp_path, config).sandbox.require == "none"
    assert read(tmp_path, config + "sandbox: {require: landlock}").sandbox.require == "landlock"
    (line,) = refused(tmp_path, config + "sandbox: {require: seccomp}")
    assert "sandbox.require: " in line
    assert "'landlock'" in line
    (line,) = refused(tmp_path, config + "sandbox: {requires: landlock}")
    assert "sandbox.requires: unknown key" in line
    assert "require" in line


def test_how_a_model_is_asked(tmp_path: Path):
    """The agent says the way, the keys and the system prompt's role; a list price is looked up, one given is kept."""
    claude = read_model(tmp_path, "id: anthropic/claude-3-5-haiku, headers: {X-Team: a}, system_prompt: user")
    azure = read_model(
        tmp_path,
        "id: azure/gpt, base_url: 'https://n.openai.azure.com', api_version: 2024-10-21, api_key_env: [A, B]"
        ", price: {input: 1, output: 2, cached_input: 0.5}",
    )
    mini = read_model(tmp_path, "id: openai/gpt-4o-mini")
    agents = build_agents([claude, azure, mini], {}, limits=SomeLimits(), release_limits=Limits())
    assert [(agent.transport, agent.api_key_env) for agent in agents] == [
        ("litellm", "ANTHROPIC_API_KEY"),
        ("openai", ("A", "B")),
        ("openai", "OPENAI_API_KEY"),
    ]
    assert (agents[0].base_url, agents[0].headers, agents[0].system_prompt) == (None, {"X-Team": "a"}, "user")
    assert agents[1].base_url == "https://n.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21"
    assert agents[1].price == Price(input=1, output=2, cached_input=0.5)
    assert agents[2].price
    assert (agents[2].price.input, (agents[2].price.source or "")[:8]) == (0.15, "litellm ")


def test_quotas_of_several_keys(tmp_path: Path):
    """With quota_per_key, each key brings the whole quota; what a model may have in flight stays its own."""
    config = read(
        tmp_path,
        "release: r\nquotas: {q: {requests_per_minute: 10, max_in_flight: 4}}\nmodels:\n"
        "- {id: openai/x, name: a, api_key_env: [A, B], quota_per_key: true, quota: q}\n"
        "- {id: openai/x, name: b, api_key_env: [A, B], quota_per_key: true, pacing: {tokens_per_minute: 100}}\n"
        "- {id: openai/x, name: c, api_key_env: [A, B], pacing: {tokens_per_minute: 100}}\n"
        "- {id: openai/x, name: d, api_key_env: [A, B], quota: q}\n",
    )
    more = {"limits": SomeLimits(), "release_limits": Limits(), "quotas": config.quotas}
    a, b, c = build_agents(config.models[:3], {}, **more)
    assert a.quota
    assert (a.quota.requests_per_minute, a.quota.tokens_per_minute, a.quota.max_in_flight) == (20, None, 8)
    assert (b.pacing.tokens_per_minute, b.pacing.max_in_flight) == (200, c.pacing.max_in_flight)
    assert c.pacing.tokens_per_minute == 100
    with pytest.raises(UsageError, match=r"models 'a' and 'd' share quota 'q'.*quota of its own"):
        build_agents(config.models, {}, **more)


QUOTAS = "release: r\nquotas: {main: {requests_per_minute: 600, max_in_flight: 9}}\nmodels:\n"


def test_models_share_a_named_quota(tmp_path: Path):
    """A quota is written once, and models name it; a model without one says its own rates."""
    (tmp_path / "run.yaml").write_text(
        QUOTAS + "- {id: openai/x, quota: main}\n- {id: openai/y, pacing: {tokens_per_minute: 5}, limits: {wall: 9}}"
    )
    config = read_run_config(str(tmp_path / "run.yaml"))
    shared, own = build_agents(config.models, {}, limits=SomeLimits(), release_limits=Limits(), quotas=config.quotas)
    assert shared.quota == Quota(name="main", requests_per_minute=600, max_in_flight=9)
    assert (own.quota, own.pacing.tokens_per_minute, own.limits.wall) == (None, 5, 9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("{id: openai/x, quota: mian}", "model 'openai/x': there is no quota 'mian' — did you mean 'main'?"),
        (
            "{id: openai/x, quota: main, pacing: {requests_per_minute: 5}}",
            "model 'openai/x' has both quota 'main' and pacing.requests_per_minute; say rates in one of them",
        ),
    ],
)
def test_bad_quotas(model: str, message: str, tmp_path: Path):
    """An unknown name gets the nearest known one, and a rate is said in one place."""
    (line,) = refused(tmp_path, f"{QUOTAS}- {model}")
    assert message in line


def test_unknown_keys_of_quotas(tmp_path: Path):
    """They are refused like all others."""
    content = f"release: r\nquotas: {{limits: {{request_per_minute: 1}}}}\nmodels: [{ECHO}]"
    (line,) = refused(tmp_path, content)
    assert "quotas.limits.request_per_minute: unknown key — did you mean 'requests_per_minute'?" in line

"""What authors may write, and what is said about everything else."""

import pytest

from trunchray.errors import Problem
from trunchray.frontends.benchmark.cases import CASE
from trunchray.frontends.benchmark.config import CONFIG, config_without_file
from trunchray.frontends.benchmark.evals import EVAL
from trunchray.frontends.benchmark.position import Position, shown, step_into

PLACE = Position("file", 3)

CONFIG_FIELDS = {"protocolVersion": 1, "title": "T", "version": "1.0.0"}
CASE_FIELDS = {"id": "a", "prompt": "p"}


def complaints(shape, value) -> list[str]:
    """What is said about a value, as `field: message`; asserts that a value comes out exactly when nothing is."""
    found: list[Problem] = []
    assert (shape.read(value, PLACE, found) is None) == bool(found)
    assert all((problem.path, problem.row) == ("file", 3) for problem in found)
    return [f"{problem.field}: {problem.message}" for problem in sorted(found)]


def config_complaints(**fields) -> list[str]:
    return complaints(CONFIG, CONFIG_FIELDS | fields)


def case_complaints(**fields) -> list[str]:
    return complaints(CASE, CASE_FIELDS | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"description": "", "license": "Apache-2.0", "homepage": "https://example.org/a?b#c", "tags": ["a", "b"]},
        {"license": "MIT OR GPL-2.0-only WITH Classpath-exception-2.0"},
        {"version": "1.0.0-alpha.1+001"},
        {"version": "0.0.0-0-a.x-y-z.--"},
        {"defaults": {}},
        {"defaults": {"limits": {"maxSteps": 1, "maxToolCalls": 0, "maxOutputTokens": 1}}},
        {"evals": ["a.ts"], "tools": []},
        {"title": "x" * 120},
    ],
)
def test_config_accepts(fields):
    """Every documented field of the config is accepted."""
    assert config_complaints(**fields) == []


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"protocolVersion": 2}, "protocolVersion: must be 1, not 2; this version of trunchray knows protocol version"),
        ({"protocolVersion": True}, "protocolVersion: must be 1, not true"),
        ({"protocolVersion": "1"}, "protocolVersion: must be 1, not '1'"),
        ({"title": "\u00a0\ufeff"}, "title: must not be empty"),
        ({"title": "x" * 121}, "title: has 121 characters; at most 120 are allowed"),
        ({"title": None}, "title: must be a string, not null"),
        ({"version": "1.0"}, "version: '1.0' is not a semantic version such as '1.0.0'"),
        ({"version": "1.0.0-01"}, "version: '1.0.0-01' is not a semantic version"),
        ({"version": "v1.0.0"}, "version: 'v1.0.0' is not a semantic version"),
        ({"version": "1.0.0\n"}, "version: '1.0.0\\n' is not a semantic version"),
        ({"license": "MIT License"}, "license: 'MIT License' is not an SPDX license id"),
        ({"license": ""}, "license: '' is not an SPDX license id"),
        ({"homepage": "ftp://example.org"}, "homepage: 'ftp://example.org' is not an http or https URL"),
        ({"homepage": "http://[x"}, "homepage: 'http://[x' is not an http or https URL"),
        ({"homepage": "https://"}, "homepage: 'https://' is not an http or https URL"),
        ({"tags": ["a", "a"]}, "tags: 'a' is listed twice; remove one"),
        ({"tags": ["a", " "]}, "tags[1]: must not be empty"),
        ({"tags": "a"}, "tags: must be an array, not 'a'"),
        ({"evals": []}, "evals: must name at least one module"),
        ({"evals": [1]}, "evals[0]: must be a string, not 1"),
        ({"evals": None}, "evals: must be an array, not null"),
        ({"titel": "T"}, "titel: is not a known field — did you mean 'title'?"),
        ({"author": "T"}, "author: is not a known field; known: defaults, description"),
        ({"defaults": {"limit": {}}}, "defaults.limit: is not a known field — did you mean 'limits'?"),
        (
            {"defaults": {"limits": {"maxStep": 1}}},
            "defaults.limits.maxStep: is not a known field — did you mean 'maxS",
        ),
        ({"defaults": {"limits": {"max_steps": 1}}}, "defaults.limits.max_steps: is not a known field — did you mean "),
        ({"defaults": {"limits": {"maxSteps": 0}}}, "defaults.limits.maxSteps: must be at least 1, not 0"),
        ({"defaults": {"limits": {"maxSteps": 1.5}}}, "defaults.limits.maxSteps: must be a whole number, not 1.5"),
        ({"defaults": {"limits": {"maxSteps": True}}}, "defaults.limits.maxSteps: must be a whole number, not true"),
        ({"defaults": {"limits": {"maxSteps": 10**20}}}, "defaults.limits.maxSteps: must be at most 9007199254740991"),
        ({"defaults": {"limits": []}}, "defaults.limits: must be an object, not []"),
    ],
)
def test_config_refuses(fields, complaint):
    """Each mistake in a config is named once, with its place and what to do."""
    (found,) = config_complaints(**fields)
    assert found.startswith(complaint)


@pytest.mark.parametrize("field", ["protocolVersion", "title", "version"])
def test_config_requires(field):
    """A config says which protocol, title and version it has."""
    assert complaints(CONFIG, {k: v for k, v in CONFIG_FIELDS.items() if k != field}) == [f"{field}: is required"]


def test_config_names_all_mistakes():
    """Independent mistakes are told together."""
    assert len(config_complaints(title="", version="x", tags=["", ""], foo=1)) == 5


def test_limits_not_set_have_defaults():
    """Effective limits are complete."""
    config = CONFIG.read(CONFIG_FIELDS | {"defaults": {"limits": {"maxSteps": 3}}}, PLACE, [])
    assert config is not None
    limits = config.limits
    assert (limits.max_steps, limits.max_tool_calls, limits.max_output_tokens) == (3, 20, 4096)


@pytest.mark.parametrize(("name", "title"), [("My Bench", "My Bench"), ("", "benchmark"), ("x" * 300, "x" * 120)])
def test_without_a_config_the_folder_names_the_benchmark(name, title):
    """A benchmark needs no config."""
    config = config_without_file(name)
    assert (config.title, config.version, config.chosen("evals")) == (title, "0.0.0", None)


@pytest.mark.parametrize(
    "fields",
    [
        {"description": "", "systemPrompt": "", "tools": []},
        {"data": None},
        {"data": {"deep": [[1, "x", None]]}},
        {"tools": ["a", "b"]},
        {"id": "0._-" + "x" * 116},
        {"evaluate": {"kind": "non_empty"}},
        {"evaluate": {"kind": "answer_bank", "answers": ["a"], "forbiddenAnswers": []}},
        {"evaluate": {"kind": "tool_call_syntax", "version": 1, "alternatives": [{"calls": []}]}},
        {
            "evaluate": {
                "kind": "tool_call_syntax",
                "version": 1,
                "alternatives": [
                    {
                        "order": "unordered",
                        "calls": [
                            {
                                "toolName": "f",
                                "arguments": {"exact": {"required": False, "acceptedValues": [1, {"a": None}]}},
                                "extraArguments": "allow",
                            }
                        ],
                        "extraCalls": "allow",
                    }
                ],
            }
        },
    ],
)
def test_case_accepts(fields):
    """Every documented field of a case is accepted."""
    assert case_complaints(**fields) == []


CALLS = {"kind": "tool_call_syntax", "version": 1}
CALL = {"toolName": "f", "arguments": {"x": {"acceptedValues": 3}}}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"id": "Bad Id"}, "id: 'Bad Id' is not a valid id: start with a lower-case letter or digit"),
        ({"id": "a\n"}, "id: 'a\\n' is not a valid id"),
        ({"id": "x" * 121}, "id: '" + "x" * 58 + "… is not a valid id"),
        ({"id": 7}, "id: must be a string, not 7"),
        ({"prompt": " \u2003\ufeff"}, "prompt: must not be empty"),
        ({"prompt": ["x"]}, 'prompt: must be a string, not ["x"]'),
        ({"systemPrompt": None}, "systemPrompt: must be a string, not null"),
        ({"system_prompt": "x"}, "system_prompt: is not a known field — did you mean 'systemPrompt'?"),
        ({"promt": "x"}, "promt: is not a known field — did you mean 'prompt'?"),
        ({"expected": "x"}, "expected: is not a known field"),
        ({"tools": ["a", "a"]}, "tools: 'a' is listed twice; remove one"),
        ({"tools": "a"}, "tools: must be an array, not 'a'"),
        ({"evaluate": None}, "evaluate: must be an object, not null"),
        ({"evaluate": {}}, "evaluate.kind: is required: 'exact', 'contains' or another kind of evaluator"),
        ({"evaluate": {"kind": "exakt"}}, "evaluate.kind: 'exakt' is not a kind of evaluator — did you mean 'exact'?"),
        ({"evaluate": {"kind": "custom"}}, "evaluate.kind: a case cannot have an evaluator function of its own"),
        ({"evaluate": {"kind": "non_empty", "expected": "x"}}, "evaluate.expected: is not a known field"),
        ({"evaluate": {"kind": "exact"}}, "evaluate.expected: is required"),
        ({"evaluate": {"kind": "exact", "expected": 3}}, "evaluate.expected: must be a string, not 3"),
        ({"evaluate": {"kind": "contains", "expected": " "}}, "evaluate.expected: must not be empty after trimming"),
        ({"evaluate": {"kind": "answer_bank", "answers": []}}, "evaluate.answers: must have at least 1 entry"),
        ({"evaluate": {"kind": "answer_bank", "answers": ["a", "\u2003"]}}, "evaluate.answers: entry 1 ("),
        (
            {"evaluate": {"kind": "answer_bank", "answers": ["a"], "forbidden_answers": []}},
            "evaluate.forbidden_answers: is not a known field — did you mean 'forbiddenAnswers'?",
        ),
        ({"evaluate": {"kind": "gsm8k", "expected": "1,000"}}, "evaluate.expected: '1,000' is not a plain number"),
        ({"evaluate": {**CALLS, "alternatives": []}}, "evaluate.alternatives: must have at least 1 entry"),
        ({"evaluate": {**CALLS, "alternatives": [{}]}}, "evaluate.alternatives[0].calls: is required"),
        (
            {"evaluate": {**CALLS, "version": 2, "alternatives": [{"calls": []}]}},
            "evaluate.version: must be 1, not 2",
        ),
        (
            {"evaluate": {**CALLS, "alternatives": [{"calls": [], "order": "any"}]}},
            "evaluate.alternatives[0].order: must be 'ordered' or 'unordered', not 'any'",
        ),
        (
            {"evaluate": {**CALLS, "alternatives": [{"calls": [CALL]}]}},
            "evaluate.alternatives[0].calls[0].arguments.x.acceptedValues: must be an array, not 3",
        ),
        (
            {
                "evaluate": {
                    **CALLS,
                    "alternatives": [{"calls": [{"toolName": "f", "arguments": {"a b": {"requird": 1}}}]}],
                }
            },
            'evaluate.alternatives[0].calls[0].arguments["a b"].requird: is not a known field — did you mean',
        ),
        (
            {
                "evaluate": {
                    **CALLS,
                    "alternatives": [{"calls": [{"toolName": "f", "arguments": {"x": {"required": 1}}}]}],
                }
            },
            "evaluate.alternatives[0].calls[0].arguments.x.required: must be true or false, not 1",
        ),
        ({"prompt": "x\ud83d"}, "prompt: holds half of a surrogate pair (a broken character); remove it"),
        ({"data": {"a b": ["ok", {"k": "\udc00"}]}}, 'data["a b"][1].k: holds half of a surrogate pair'),
    ],
)
def test_case_refuses(fields, complaint):
    """Each mistake in a case is named once, with its place and what to do."""
    (found,) = case_complaints(**fields)
    assert found.startswith(complaint)


@pytest.mark.parametrize("depth", [300, 5_000])
def test_endless_nesting_is_refused(depth):
    """Data too deep to be stored is a problem of its place, not a crash."""
    deep: list = []
    for _ in range(depth):
        deep = [deep]
    assert case_complaints(data=deep) == [": is nested too deeply; flatten it"]


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_a_case_is_an_object(value):
    """A row that is not an object is named by what it is."""
    (found,) = complaints(CASE, value)
    assert found.startswith(": must be an object, not ")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "id: is required"),
        ({"id": "a", "titel": "x"}, "titel: is not a known field — did you mean 'title'?"),
        ({"id": "a", "data": 1}, "data: is not a known field"),
        ({"id": "a", "title": " "}, "title: must not be empty"),
        ({"id": "a", "prompt": ""}, "prompt: must not be empty"),
        ({"id": "a", "tools": ["x", "x"]}, "tools: 'x' is listed twice"),
    ],
)
def test_eval_refuses(fields, complaint):
    """Each mistake in an eval is named once."""
    (found,) = complaints(EVAL, fields)
    assert found.startswith(complaint)


def test_places_are_written_as_javascript_would():
    """A field's path can be pasted into the author's editor."""
    assert str(Position("a.ts", 3)) == "a.ts:3"
    assert str(Position("a.ts", 3, of_case=True)) == "case 3 of a.ts"
    assert str(Position("a.ts", 3, of_case=True).at("id").problem("is bad")) == "a.ts: case 3: id: is bad"
    assert Position("a.ts").at("a").at("[0]").at("b").field == "a[0].b"
    assert step_into(step_into("a", "b c"), 0) == 'a["b c"][0]'


def test_values_are_cut():
    """A message never holds a whole document."""
    assert shown({"a": [1, True, None]}) == '{"a": [1, true, null]}'
    assert len(shown("x" * 1_000)) == 60


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"evaluate": "non_empty"}, "evaluate: must be an object, not 'non_empty'; write { kind: \"non_empty\" }"),
        ({"evaluate": "gsm8k"}, "evaluate: must be an object, not 'gsm8k'; write { kind: \"gsm8k\", … }"),
        ({"evaluate": "maybe"}, "evaluate: must be an object, not 'maybe'"),
        ({"expected": "x"}, "expected: is not a known field; put it into `evaluate`, beside the kind"),
    ],
)
def test_a_check_in_the_wrong_place(fields, complaint):
    """What is nearly an evaluator is told how to become one."""
    assert case_complaints(**fields) == [complaint]

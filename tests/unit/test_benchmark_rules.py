"""Inheritance, the rules for all cases of a release, doubts about them, and where sources came from."""

import pytest

from trunchray.core.checks import Contains, Custom, Exact
from trunchray.errors import Problem
from trunchray.frontends.benchmark.advice import warnings
from trunchray.frontends.benchmark.cases import CASE, ExpandedCase, check_cases, expand, too_many
from trunchray.frontends.benchmark.evals import EVAL, SharedCheck, bad_form, shared_check
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.source import without_credentials
from trunchray.frontends.benchmark.staging import Stage


def make_eval(**fields):
    authored = EVAL.read({"id": "e"} | fields, Position("evals/e.ts"), [])
    assert authored is not None
    return authored


def cases_of(*cases, shared=None, path="evals/e.ts", **fields) -> list[ExpandedCase]:
    rows = []
    for number, case in enumerate(cases, 1):
        read = CASE.read({"id": f"c{number}", "prompt": "p"} | case, Position(path, number), [])
        assert read is not None
        rows.append((Position(path, number), read))
    return expand(path, make_eval(cases=[], **fields), shared, rows)


def told(cases, tools=frozenset()) -> list[str]:
    return [str(problem) for problem in sorted(set(check_cases(cases, set(tools))))]


SHARED = SharedCheck(Exact(expected="yes"))
EXACT = {"kind": "exact", "expected": "no"}


def test_a_case_replaces_what_it_inherits():
    """Tools and evaluator of a case stand in place of its eval's; an empty list clears."""
    cases = cases_of({}, {"tools": [], "evaluate": EXACT}, {"tools": ["b"]}, shared=SHARED, tools=["a"])
    assert [list(case.tools) for case in cases] == [["a"], [], ["b"]]
    assert [case.check and case.check.expected for case in cases] == ["yes", "no", "yes"]


def test_one_prompt_is_one_case():
    """A one-prompt eval is a case with the eval's id."""
    (case,) = expand("evals/e.ts", make_eval(prompt="p", tools=["a"]), SHARED, [])
    assert (case.id, case.tools, case.check, case.place.row) == ("e", ["a"], SHARED.check, 0)


def test_every_case_needs_an_evaluator():
    """A case without any evaluator is named."""
    assert told(cases_of({}, {"evaluate": EXACT})) == [
        "evals/e.ts:1: case 'c1' has no evaluator; give it or its eval an `evaluate`"
    ]


def test_duplicate_ids_name_both_places():
    """Ids are unique in the whole release, across files."""
    other = cases_of({"id": "c2"}, {"id": "c2"}, shared=SHARED, path="evals/f.ts")
    assert told(cases_of({}, {}, shared=SHARED) + other) == [
        "evals/f.ts:1: id: case id 'c2' is already used at evals/e.ts:2; ids are unique in the whole release",
        "evals/f.ts:2: id: case id 'c2' is already used at evals/e.ts:2; ids are unique in the whole release",
    ]


def test_unknown_tools_are_named_where_they_are_written():
    """An inherited tool that does not exist is a problem of the eval, once; a case's own is the case's."""
    cases = cases_of({}, {}, {"tools": ["lookp"]}, shared=SHARED, tools=["search"])
    assert told(cases, {"lookup"}) == [
        "evals/e.ts: tools: tool 'search' does not exist in this repository; known: lookup",
        "evals/e.ts:3: tools: tool 'lookp' does not exist in this repository — did you mean 'lookup'?",
    ]
    assert check_cases(cases, None) == []


def test_an_unknown_tool_that_no_case_asks_for_is_no_problem():
    """Only what cases use has to exist."""
    assert told(cases_of({"tools": []}, shared=SHARED, tools=["gone"])) == []


def test_a_plan_names_only_tools_of_its_case():
    """Waiting for a call that the model cannot make is a mistake."""
    plan = {"kind": "tool_call_syntax", "version": 1, "alternatives": [{"calls": [{"toolName": "f"}]}]}
    cases = cases_of({"evaluate": plan, "tools": ["g"]}, {"evaluate": plan, "tools": ["f"]}, {"evaluate": plan})
    message = "evaluate: waits for a call of 'f', which is not in the case's `tools`; add it there"
    assert told(cases, {"f", "g"}) == [f"evals/e.ts:1: {message}", f"evals/e.ts:3: {message}"]


def test_the_number_of_cases_is_bounded():
    """A release holds at most 25,000 cases."""
    assert too_many(25_000) == []
    assert [str(p) for p in too_many(25_001)] == ["evals: 25,001 cases are too many; a release holds at most 25,000"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "has no cases; give it a `prompt`, or `cases`"),
        ({"prompt": "p", "cases": None}, "has both `prompt` and `cases`; keep one of them"),
        ({"prompt": "p"}, None),
        ({"cases": "./x.jsonl"}, None),
    ],
)
def test_an_eval_has_one_form(fields, complaint):
    """An eval is one prompt or a set of cases."""
    assert bad_form(make_eval(**fields)) == complaint


CUSTOM = {"kind": "custom", "evaluatorKey": "evaluators/x.ts#strict", "sourcePath": "evaluators/x.ts"}


def shared_of(tmp_path, evaluate, **fields) -> tuple[SharedCheck | None, list[str]]:
    (tmp_path / "evaluators").mkdir()
    (tmp_path / "evaluators" / "x.ts").touch()
    found: list[Problem] = []
    authored = make_eval(prompt="p", evaluate=evaluate, **fields)
    stage = Stage(tmp_path, tmp_path, {})
    return shared_check(stage, "evals/e.ts", authored, is_function=False, found=found), [str(p) for p in found]


@pytest.mark.parametrize(
    "changes", [{}, {"evaluatorKey": "./evaluators/x.ts#strict", "sourcePath": "./evaluators/x.ts"}]
)
def test_a_function_elsewhere_is_named_by_key(tmp_path, changes):
    """A reference names module and export; the key is stored with the normalised path."""
    expected = SharedCheck(Custom(evaluator_key="evaluators/x.ts#strict"), "evaluators/x.ts", "strict")
    assert shared_of(tmp_path, CUSTOM | changes) == (expected, [])


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [
        (CUSTOM | {"sourcePath": "evaluators/y.ts"}, "evaluate.sourcePath: 'evaluators/y.ts' does not exist"),
        (CUSTOM | {"sourcePath": "../x.ts"}, "evaluate.sourcePath: '../x.ts' leads out of the repository"),
        (CUSTOM | {"sourcePath": "evaluators"}, "evaluate.sourcePath: 'evaluators' must be a .ts, .mts, .js or .mjs"),
        (
            CUSTOM | {"evaluatorKey": "evaluators/z.ts#strict"},
            "evaluate.evaluatorKey: must be 'evaluators/x.ts#<export>', not 'evaluators/z.ts#strict'",
        ),
        (CUSTOM | {"evaluatorKey": "evaluators/x.ts#"}, "evaluate.evaluatorKey: must be 'evaluators/x.ts#<export>'"),
        ({"kind": "custom"}, "evaluate.evaluatorKey: is required"),
        (None, "evaluate: must be an object, not null"),
    ],
)
def test_bad_references(tmp_path, evaluate, message):
    """A reference that leads nowhere is named."""
    shared, problems = shared_of(tmp_path, evaluate)
    assert shared is None
    assert problems[0].startswith(f"evals/e.ts: {message}")


BANK = {"kind": "answer_bank", "answers": ["30 Days"]}


@pytest.mark.parametrize(
    ("case", "warning"),
    [
        ({"evaluate": {"kind": "contains", "expected": " A "}}, "'contains' ' A ' is so short that almost any answer"),
        ({"evaluate": BANK | {"answers": ["B", "long"]}}, "'answer_bank' entry 'B' is so short"),
        ({"evaluate": BANK | {"forbiddenAnswers": ["no"]}}, "'answer_bank' entry 'no' is so short"),
        (
            {"evaluate": BANK | {"forbiddenAnswers": ["about 30\u00a0days"]}},
            "answer '30 Days' is part of the forbidden 'about 30\\xa0days'",
        ),
        ({"evaluate": {"kind": "exact", "expected": "yes "}}, "'exact' 'yes ' has outer blanks"),
    ],
)
def test_doubts(case, warning):
    """What is allowed but probably not meant is told with its place."""
    (found,) = warnings("evals/e.ts", cases_of(case))
    assert found.startswith(f"evals/e.ts:1: evaluate: {warning}")


@pytest.mark.parametrize(
    "case",
    [
        {"evaluate": {"kind": "contains", "expected": "abc"}},
        {"evaluate": BANK | {"forbiddenAnswers": ["60 days"]}},
        {"evaluate": {"kind": "exact", "expected": "A"}},
        {"evaluate": {"kind": "gsm8k", "expected": "4"}},
    ],
)
def test_no_doubts(case):
    """Ordinary checks are not commented on."""
    assert warnings("evals/e.ts", cases_of(case)) == []


def test_the_same_doubt_is_told_once():
    """A thousand cases with the same doubt give one line, and so does a doubt they all inherit."""
    many = cases_of(*[{"evaluate": {"kind": "contains", "expected": letter}} for letter in "ABC"])
    assert [line.endswith("(and 2 more like it in this file)") for line in warnings("evals/e.ts", many)] == [True]
    inherited = cases_of({}, {}, shared=SharedCheck(Contains(expected="A")))
    (line,) = warnings("evals/e.ts", inherited)
    assert line.startswith("evals/e.ts: evaluate: 'contains' 'A' is so short")
    assert "more like it" not in line


def test_a_function_without_data_is_doubted():
    """A function that gets no private data grades all cases alike; one prompt alone cannot have data."""
    shared = SharedCheck(Custom(evaluator_key="evals/e.ts#default"), "evals/e.ts", "default")
    assert "no case has `data`" in warnings("evals/e.ts", cases_of({}, {}, shared=shared))[0]
    assert warnings("evals/e.ts", cases_of({}, {"data": 1}, shared=shared)) == []
    assert warnings("evals/e.ts", expand("evals/e.ts", make_eval(prompt="p"), shared, [])) == []


@pytest.mark.parametrize(
    ("remote", "stored"),
    [
        ("https://user:token@example.org/a/b.git", "https://example.org/a/b.git"),
        ("https://token@example.org:8443/a.git?key=1#x", "https://example.org:8443/a.git"),
        ("ssh://git@example.org/a.git", "ssh://example.org/a.git"),
        ("git@example.org:a/b.git", "example.org:a/b.git"),
        ("example.org:a/b.git", "example.org:a/b.git"),
        ("/home/someone/repository", None),
        ("../repository", None),
        ("file:///home/someone/repository", None),
    ],
)
def test_remotes_are_stored_without_credentials(remote, stored):
    """Neither a secret nor a folder of this machine enters a release."""
    assert without_credentials(remote) == stored

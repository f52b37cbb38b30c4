"""What an evaluator gets, and what it may return."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import JsonValue

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, Graded, SandboxModule
from trunchray.errors import EvaluatorError

EVAL = SandboxModule("eval", b"export default { evaluate: (given) => (0, eval)(`(${given.expression})`) };", "default")


def returning(expression: str) -> SandboxModule:
    code = f"export default {{ evaluate: (given) => ({expression}) }};"
    return SandboxModule(expression, code.encode(), "default")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[EvaluatorSandbox]:
    """One sandbox for many small calls."""
    sandbox = EvaluatorSandbox(slots=1)
    yield sandbox
    await sandbox.close()


ACCEPTED = {
    "true": ("true", Graded(True, 1, None, None)),
    "false": ("false", Graded(False, 0, None, None)),
    "promise": ("Promise.resolve(true)", Graded(True, 1, None, None)),
    "thenable": ("({ then(done) { done(true) } })", Graded(True, 1, None, None)),
    "passed alone": ("({ passed: false })", Graded(False, 0, None, None)),
    "a score against the verdict": ("({ passed: true, score: 0.25 })", Graded(True, 0.25, None, None)),
    "minus zero": ("({ passed: true, score: -0 })", Graded(True, 0, None, None)),
    "undefined members": ("({ passed: true, score: undefined, message: undefined })", Graded(True, 1, None, None)),
    "null message": ("({ passed: true, message: null, details: null })", Graded(True, 1, None, None)),
    "details": ("({ passed: true, details: [1.5, { a: null }] })", Graded(True, 1, None, [1.5, {"a": None}])),
    "no prototype": ("Object.assign(Object.create(null), { passed: true })", Graded(True, 1, None, None)),
    "cloned by the host": ("structuredClone({ passed: true, details: [1] })", Graded(True, 1, None, [1])),
    "half a pair": ("({ passed: true, message: '\\ud800!' })", Graded(True, 1, "\ufffd!", None)),
    "half a pair as a name": ("({ passed: true, details: { '\\udc00': 1 } })", Graded(True, 1, None, {"\ufffd": 1})),
    "toJSON as data": ("({ passed: true, details: { toJSON: 1 } })", Graded(True, 1, None, {"toJSON": 1})),
    "__proto__ as data": (
        "({ passed: true, details: JSON.parse('{\"__proto__\": 1}') })",
        Graded(True, 1, None, {"__proto__": 1}),
    ),
}


@pytest.mark.parametrize(("expression", "graded"), ACCEPTED.values(), ids=ACCEPTED.keys())
@pytest.mark.asyncio(loop_scope="module")
async def test_a_boolean_or_a_verdict_is_accepted(shared: EvaluatorSandbox, expression: str, graded: Graded) -> None:
    """Missing fields have their defaults; text becomes well-formed."""
    assert await shared.evaluate(EVAL, {"expression": expression}) == graded


REFUSED = {
    "nothing": ("undefined", "it is undefined"),
    "null": ("null", "it is null"),
    "number": ("1", "it is 1"),
    "text": ("'yes'", 'it is "yes"'),
    "array": ("[true]", "it is [true]"),
    "function": ("() => true", "it is a function"),
    "no verdict": ("({ score: 1 })", "passed is missing, not a boolean"),
    "passed as text": ("({ passed: 'true' })", 'passed is "true", not a boolean'),
    "unknown field": ("({ passed: true, reason: 'x' })", 'unknown field "reason"'),
    "NaN": ("({ passed: true, score: NaN })", "score is NaN"),
    "high score": ("({ passed: true, score: 1.01 })", "score is 1.01, not 0 to 1"),
    "low score": ("({ passed: true, score: -1 })", "score is -1, not 0 to 1"),
    "null score": ("({ passed: true, score: null })", "score is null"),
    "bigint": ("({ passed: true, score: 1n })", "score is a bigint"),
    "message as number": ("({ passed: true, message: 1 })", "message is 1, not text or null"),
    "getter": ("({ get passed() { return true } })", "passed is computed by a getter"),
    "getter in details": (
        "({ passed: true, details: { get a() { for (;;); } } })",
        "details.a is computed by a getter",
    ),
    "class instance": ("({ passed: true, details: new Date(0) })", "details is an instance of Date"),
    "map": ("({ passed: true, details: [new Map()] })", "details[0] is an instance of Map"),
    "member function": ("({ passed: true, details: { toJSON() { for (;;); } } })", "details.toJSON is a function"),
    "undefined in details": ("({ passed: true, details: { a: undefined } })", "details.a is undefined"),
    "symbol": ("({ passed: true, details: Symbol('x') })", "details is a symbol"),
    "symbol name": ("({ passed: true, details: { [Symbol('x')]: 1 } })", "details has a property named by a symbol"),
    "hole": ("({ passed: true, details: [, 1] })", "details[0] is a hole"),
    "named array": (
        "({ passed: true, details: 'a'.match(/a/) })",
        'details is an array with the named property "index"',
    ),
    "cycle": ("(() => { const a = { passed: true }; a.details = a; return a; })()", "details refers back"),
    "deep": ("({ passed: true, details: JSON.parse('['.repeat(4e3) + ']'.repeat(4e3)) })", "more than 100 levels deep"),
    "proxy that fails": (
        "({ passed: true, details: new Proxy({}, { ownKeys() { throw new Error('trap') } }) })",
        "reading the result failed: Error: trap",
    ),
    "pretender": ("Object.create({ passed: true })", "not plain data"),
}


@pytest.mark.parametrize(("expression", "reason"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.asyncio(loop_scope="module")
async def test_anything_else_is_an_invalid_result(shared: EvaluatorSandbox, expression: str, reason: str) -> None:
    """The failure says where and what was wrong; nothing is guessed or repaired."""
    with pytest.raises(EvaluatorError) as caught:
        await shared.evaluate(EVAL, {"expression": expression})
    assert caught.value.type == "invalid_result"
    assert reason in str(caught.value)


async def test_details_of_one_hundred_levels_are_accepted(sandbox: EvaluatorSandbox) -> None:
    """The depth limit is the documented one, and Python can read what passes it."""
    nested = "({ passed: true, details: JSON.parse('['.repeat(100) + ']'.repeat(100)) })"
    assert (await sandbox.evaluate(returning(nested), {})).passed


GIVEN: dict[str, JsonValue] = {"a": [1, 2.5, None, True, {"b": "ü中😀\u2028"}], "half": "\ud800", "n": float("nan")}


async def test_the_input_arrives_as_it_is(sandbox: EvaluatorSandbox) -> None:
    """Text with half a surrogate pair is kept for JavaScript, and NaN is null, as JSON has it."""
    echo = returning("({ passed: given.half === '\\ud800', details: given })")
    graded = await sandbox.evaluate(echo, GIVEN)
    assert graded.passed
    assert graded.details == {"a": GIVEN["a"], "half": "\ufffd", "n": None}


async def test_input_that_is_too_deep_is_a_failure_of_its_call(sandbox: EvaluatorSandbox) -> None:
    """Arguments that a model nests a hundred thousand levels deep do not crash the worker."""
    deep: JsonValue = None
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EvaluatorError) as caught:
        await sandbox.evaluate(returning("true"), {"toolCalls": deep})
    assert caught.value.type == "invalid_input"


async def test_this_is_the_export_and_any_export_can_be_named(sandbox: EvaluatorSandbox) -> None:
    """`evaluate` is called as a method of the export that the module names."""
    code = b"export const strict = { limit: 3, async evaluate({ n }) { return n <= this.limit; } };"
    assert (await sandbox.evaluate(SandboxModule("k", code, "strict"), {"n": 3})).passed


BAD_MODULES = {
    "syntax": ("export default {", "SyntaxError"),
    "no such export": ("export const other = 1;", 'the export "default" has no function "evaluate"'),
    "no function": ("export default { evaluate: 1 };", 'has no function "evaluate"'),
    "throws": ("throw new Error('at once');", "the module failed while it was loaded: Error: at once"),
    "imports": ("import fs from 'node:fs'; export default { evaluate: () => true };", 'it imports "node:fs"'),
}


@pytest.mark.parametrize(("code", "reason"), BAD_MODULES.values(), ids=BAD_MODULES.keys())
async def test_a_module_without_an_evaluator_is_named(sandbox: EvaluatorSandbox, code: str, reason: str) -> None:
    """What cannot be called says why."""
    with pytest.raises(EvaluatorError) as caught:
        await sandbox.evaluate(SandboxModule(code, code.encode(), "default"), {})
    assert caught.value.type == "bad_module"
    assert reason in str(caught.value)


async def test_node_builtins_work_and_their_process_serves_once(sandbox: EvaluatorSandbox) -> None:
    """A module that imports a built-in gets a process for each call, so that what it changes there is gone."""
    code = b"""
        import crypto from "node:crypto";
        import { inspect } from "util";
        export default { evaluate: ({ text }) => {
          const first = crypto.leak === undefined;
          crypto.leak = 1;
          const digest = crypto.createHash("sha256").update(text).digest("hex");
          return { passed: first, message: digest.slice(0, 8) + inspect(new Map()) };
        } };
    """
    for _ in range(2):
        graded = await sandbox.evaluate(SandboxModule("builtins", code, "default"), {"text": ""})
        assert graded == Graded(True, 1, "e3b0c442Map(0) {}", None)
    assert sandbox._idle == []

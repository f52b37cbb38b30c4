"""The inspector: exports as plain data, data files, and the case lines of a release."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import JsonValue

from trunchray.adapters.sandbox.inspector import Flaw, Inspector

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def inspector() -> AsyncIterator[Inspector]:
    async with Inspector(module_deadline=1.5) as inspector:
        yield inspector


def export(expression: str) -> bytes:
    return f"export default {expression};".encode()


async def test_an_export_is_its_plain_data_and_the_paths_of_its_functions(inspector: Inspector) -> None:
    """Functions are left out of the value, wherever they are, and named."""
    inspection = await inspector.inspect(
        export(
            '{ id: "a", evaluate() {}, cases: [{ n: 1_000, evaluate: () => 1 }, null, class {}], "x y": { f() {} } }'
        )
    )
    assert inspection.value == {"id": "a", "cases": [{"n": 1000}, None, None], "x y": {}}
    assert inspection.functions == ("evaluate", "cases[0].evaluate", "cases[2]", '["x y"].f')
    assert inspection.flaws == ()


HALF = "half of a surrogate pair, which is not a character"
FLAWS = {
    "class instance": ("{ a: [new Date(0)] }", "a[0]", "is an instance of Date, not plain data"),
    "own class": ("{ a: new (class Point {})() }", "a", "is an instance of Point, not plain data"),
    "symbol": ("{ a: Symbol('x') }", "a", "is a symbol, which JSON cannot carry"),
    "symbol name": ("{ [Symbol('x')]: 1 }", "", "has a property named by a symbol"),
    "bigint": ("{ a: { b: 1n } }", "a.b", "is a bigint, which JSON cannot carry"),
    "undefined": ("{ a: undefined }", "a", "is undefined; leave it out or use null"),
    "NaN": ("{ a: [0, NaN] }", "a[1]", "is NaN, which JSON cannot carry"),
    "infinity": ("{ a: -Infinity }", "a", "is -Infinity, which JSON cannot carry"),
    "cycle": ("(() => { const a = {}; a.b = { a }; return a; })()", "b.a", "refers back to a value that contains it"),
    "getter": ("{ get a() { return 1; } }", "a", "is computed by a getter or setter; write the value"),
    "setter": ("{ set a(x) {} }", "a", "is computed by a getter or setter; write the value"),
    "promise inside": ("{ a: Promise.resolve(1) }", "a", "is a promise; export its result"),
    "hole": ("{ a: [1, , 3] }", "a[1]", "is a hole in the array"),
    "named array": ("{ a: Object.assign([1], { x: 1 }) }", "a", 'is an array with the named property "x"'),
    "half a pair": ("{ a: '\\ud83d' }", "a", f"contains {HALF}"),
    "half a pair as a name": ("{ 'x\\ude00': 1 }", '["x\\ude00"]', f"has a name with {HALF}"),
    "odd name": ("{ 'x y': { 1: NaN } }", '["x y"]["1"]', "is NaN, which JSON cannot carry"),
    "promise": ("Promise.resolve({})", "", "is a promise; export its result"),
    "function": ("() => 1", "", "must be an object, but is a function"),
    "array": ("[]", "", "must be an object, but is an array"),
    "null": ("null", "", "must be an object, but is null"),
    "text": ("'x'", "", "must be an object, but is a string"),
}  # fmt: skip


@pytest.mark.parametrize(("expression", "path", "message"), FLAWS.values(), ids=FLAWS.keys())
async def test_what_is_not_plain_data_is_a_flaw(inspector: Inspector, expression: str, path: str, message: str) -> None:
    """Each flaw has its place and its reason."""
    assert (await inspector.inspect(export(expression))).flaws == (Flaw(path, message),)


async def test_the_value_may_be_one_hundred_levels_deep(inspector: Inspector) -> None:
    """The hundred-and-first level is a flaw, not a crash."""
    deep = "JSON.parse('{\"a\":'.repeat({n}) + '1' + '}'.repeat({n}))"
    assert (await inspector.inspect(export(deep.replace("{n}", "101")))).flaws == ()
    (flaw,) = (await inspector.inspect(export(deep.replace("{n}", "5000")))).flaws
    assert flaw.message == "is nested more than 100 levels deep"


async def test_all_flaws_of_an_export_are_told(inspector: Inspector) -> None:
    """Independent flaws come together, at most fifty."""
    flaws = (await inspector.inspect(export("{ a: 1n, b: [NaN, () => 1], c: Array(99).fill(undefined) }"))).flaws
    assert [flaw.path for flaw in flaws[:3]] == ["a", "b[0]", "c[0]"]
    assert len(flaws) == 50


MODULES = {
    "no default": ("export const a = 1, b = 2;", "has no default export; it exports a, b"),
    "nothing": ("", "has no default export; it exports nothing"),
    "throws": ("throw new TypeError('at once');", "the module failed while it was loaded: TypeError: at once"),
    "network": (
        "export default await fetch('http://127.0.0.1:9/');",
        "the module failed while it was loaded: TypeError: there is no network in the sandbox",
    ),
    "waits": ("await new Promise(() => {});", "the module waits for something that will never happen"),
    "hangs": ("for (;;);", "the module was not evaluated within 1.5 s"),
    "file system": (
        "import fs from 'fs'; export default {};",
        'the module failed while it was loaded: Error: it imports "fs", which the sandbox does not have',
    ),
}


@pytest.mark.parametrize(("code", "message"), MODULES.values(), ids=MODULES.keys())
async def test_a_module_that_cannot_be_evaluated_has_a_flaw(inspector: Inspector, code: str, message: str) -> None:
    """Whatever a module does, the next one is inspected."""
    inspection = await inspector.inspect(code.encode())
    assert (inspection.value, inspection.flaws) == (None, (Flaw("", message),))
    assert (await inspector.inspect(export("{ a: 1 }"))).value == {"a": 1}


async def test_one_module_does_not_see_what_another_left(inspector: Inspector) -> None:
    """Globals, prototypes and built-in modules are fresh for every module."""
    spoils = b"""
        import crypto from "node:crypto";
        globalThis.leak = crypto.leak = Object.prototype.leak = 1;
        JSON.stringify = () => "{}";
        export default { a: crypto.createHash("md5").update("").digest("hex") };
    """
    assert (await inspector.inspect(spoils)).value == {"a": "d41d8cd98f00b204e9800998ecf8427e"}
    looks = b"""
        import crypto from "node:crypto";
        export default { leaks: [typeof leak, typeof crypto.leak, typeof ({}).leak] };
    """
    assert (await inspector.inspect(looks)).value == {"leaks": ["undefined"] * 3}


UNSTEADY = {
    "chance": ("{ cases: [{ data: [1, Math.random()] }] }", "cases[0].data[1]"),
    "id": ("{ a: 1, cases: [{ id: 'c' + Math.random() }] }", "cases[0].id"),
    "clock": ("{ a: { 'x y': Date.now() } }", 'a["x y"]'),
    "date": ("{ a: new Date().toISOString() }", "a"),
    "date as text": ("{ a: Date() }", "a"),
    "uptime": ("{ a: [performance.now()] }", "a[0]"),
    "UUID": ("{ a: crypto.randomUUID() }", "a"),
    "random bytes": ("{ a: [...crypto.getRandomValues(new Uint8Array(4))] }", "a[0]"),
    "name": ("{ a: { [Math.random()]: 1 } }", "a"),
    "length": ("{ a: Array(1 + Math.floor(Math.random() * 1e3)).fill(0) }", "a"),
    "function": ("{ a: Date.now() > 1.6e12 ? () => 1 : 1 }", "a"),
    "flaw": ("{ a: Date.now() > 1.6e12 ? NaN : 1 }", "a"),
}


@pytest.mark.parametrize(("expression", "path"), UNSTEADY.values(), ids=UNSTEADY.keys())
async def test_an_export_must_not_depend_on_clock_or_chance(inspector: Inspector, expression: str, path: str) -> None:
    """What another run would not export alike is a flaw at the first place that differs."""
    (flaw,) = (await inspector.inspect(export(expression))).flaws
    assert flaw.path == path
    assert "depends on the clock or on chance, and must be written as plain data" in flaw.message


async def test_chance_of_built_in_modules_is_found(inspector: Inspector) -> None:
    """Random values of `node:crypto` are as refused as those of the global."""
    code = b'import { randomUUID } from "node:crypto"; export default { a: 1, b: randomUUID() };'
    (flaw,) = (await inspector.inspect(code)).flaws
    assert flaw.path == "b"


async def test_a_module_that_fails_only_at_another_time_has_a_flaw(inspector: Inspector) -> None:
    """The failure is told, and that it comes from the clock or from chance."""
    code = b"if (Date.now() > 1.6e12) throw new Error('too late'); export default {};"
    (flaw,) = (await inspector.inspect(code)).flaws
    assert "Error: too late (only in the second of two runs; it depends on the clock" in flaw.message


async def test_clock_and_chance_may_be_used_for_what_is_not_exported(inspector: Inspector) -> None:
    """Libraries may ask for the time while they are loaded."""
    code = b"""
        const begun = Date.now(), token = crypto.randomUUID(), kept = new WeakRef({});
        export default { a: typeof token, b: new Date(0).toISOString(), evaluate: () => [begun, kept] };
    """
    inspection = await inspector.inspect(code)
    assert (inspection.value, inspection.flaws) == ({"a": "string", "b": "1970-01-01T00:00:00.000Z"}, ())


STACKS = {
    "own": "new Error('x').stack",
    "captured": "(() => { const at = {}; Error.captureStackTrace(at); return at.stack; })()",
    "of the host": "new DOMException('x').stack",
    "thrown by the host": "(() => { try { atob('*'); } catch (e) { return e.stack; } })()",
    "formatted": """(() => {
        Error.prepareStackTrace = (_, frames) => frames.map((frame) => frame.getFileName()).join();
        return new Error('x').stack;
    })()""",
    "all frames": "(() => { Error.stackTraceLimit = Infinity; return new Error('x').stack; })()",
}


@pytest.mark.parametrize("expression", STACKS.values(), ids=STACKS.keys())
async def test_stack_traces_name_no_file_of_the_installation(inspector: Inspector, expression: str) -> None:
    """A release does not depend on the folder that it was compiled from."""
    inspection = await inspector.inspect(export(f"{{ stack: String({expression}) }}"))
    assert inspection.flaws == ()
    assert isinstance(inspection.value, dict)
    stack = str(inspection.value["stack"])
    assert stack
    assert not any(sign in stack for sign in ("file:", "/", "realm.mjs", "node:", "ext:"))


async def test_named_exports_and_evaluators(inspector: Inspector) -> None:
    """An evaluator is an object or function with a callable `evaluate`; anything else is explained."""
    code = b"""
        export const a = { evaluate() {} }, b = { evaluate: 1 }, c = null;
        export function d() {}
        d.evaluate = () => true;
    """
    assert (await inspector.inspect(code, "a")).functions == ("evaluate",)
    assert [await inspector.is_evaluator(code, name) for name in "abcde"] == [
        None,
        "evaluate must be a function, but is a number",
        'must be an object with a function "evaluate", but is null',
        None,
        'has no export named "e"; it exports a, b, c, d',
    ]


async def test_evaluators_are_the_same_whenever_they_are_made(inspector: Inspector) -> None:
    """What an evaluator holds besides its function may be anything, but neither the time nor a random number."""
    code = b"""
        const evaluate = () => true;
        export const steady = { evaluate, table: new Map(), made: class {} };
        export const late = { evaluate, limit: Date.now() };
        export const lucky = { evaluate, table: new Map(), bounds: { low: Math.random() } };
        export const shifty = { evaluate, [Date.now() < 1_600_000_000_000 ? "a" : "b"]: () => 1 };
    """
    steady, late, lucky, shifty = [await inspector.is_evaluator(code, name) for name in NAMES]
    assert steady is None
    assert (late or "").startswith("limit differs between two runs: 15778368")
    assert (lucky or "").startswith("bounds.low differs between two runs: 0.")
    assert (shifty or "").startswith("a differs between two runs; it depends on the clock or on chance")


NAMES = ("steady", "late", "lucky", "shifty")


async def test_lines_end_at_line_feeds_only(inspector: Inspector) -> None:
    """CRLF is accepted, U+2028 and a lone CR are data, blank lines count but are no rows, a BOM is dropped."""
    lines = [
        '\ufeff{"a":"\u2028\u2029\u0085\v"}',
        '{"b":1}\r',
        "",
        " \u00a0\u2003\ufeff\r",
        '{"c":\r2}',
        '{"d":"\ufeff"}',
    ]
    rows = await inspector.read_jsonl("\n".join(lines).replace("\v", "\\u000b").encode())
    assert rows.rows == [
        (1, {"a": "\u2028\u2029\u0085\v"}),
        (2, {"b": 1}),
        (5, {"c": 2}),
        (6, {"d": "\ufeff"}),
    ]
    assert rows.flaws == []


async def test_each_bad_line_is_told_with_its_number(inspector: Inspector) -> None:
    """Bytes that are not UTF-8, text that is not JSON, and JSON that is not plain data."""
    lines = [
        b"{}",
        b'{"a":"\xff"}',
        b"{'a':1}",
        b'{"a":1e999}',
        b'{"a":"\\ud800"}',
        b"[" * 5000 + b"]" * 5000,
        b"{}\x85",
    ]
    rows = await inspector.read_jsonl(b"\n".join(lines))
    assert rows.rows == [(1, {})]
    assert [line for line, _ in rows.flaws] == [2, 3, 4, 5, 6, 7]
    reasons = dict(rows.flaws)
    assert reasons[2] == reasons[7] == "is not valid UTF-8"
    assert "JSON at position 1" in reasons[3]
    assert reasons[4] == "a is Infinity, which JSON cannot carry"
    assert reasons[5] == "a contains half of a surrogate pair, which is not a character"
    assert "nested more than 100 levels deep" in reasons[6]


@pytest.mark.parametrize("data", [b"", b"\n\r\n", "\ufeff".encode()])
async def test_a_file_without_rows_is_empty(inspector: Inspector, data: bytes) -> None:
    """No rows and no flaws."""
    rows = await inspector.read_jsonl(data)
    assert (rows.rows, rows.flaws) == ([], [])


async def emitted(inspector: Inspector, source: str, data: bytes | None = None, **more: JsonValue) -> list[JsonValue]:
    inspection = await inspector.inspect(export(source))
    handle = None if data is None else (await inspector.read_jsonl(data)).handle
    rows_path = None if data is None else "evals/x.jsonl"
    lines = await inspector.emit(
        inspection.handle, handle, path="evals/x.ts", rows_path=rows_path, evaluate=more.get("evaluate")
    )
    assert lines.endswith(b"\n")
    return [json.loads(line) for line in lines.decode().split("\n")[:-1]]


CUSTOM: JsonValue = {"kind": "custom", "evaluatorKey": "evals/x.ts#default"}


async def test_a_one_prompt_eval_is_one_case(inspector: Inspector) -> None:
    """The case has the eval's id and title, no row, and the evaluator that Python names for the function."""
    assert await emitted(inspector, '{ id: "e", prompt: "\\ufeff hi \\u0085", evaluate() {} }', evaluate=CUSTOM) == [
        {
            "id": "e",
            "evalId": "e",
            "title": "e",
            "description": "",
            "input": {"prompt": "hi \u0085", "systemPrompt": None, "tools": []},
            "data": None,
            "checks": {"evaluate": CUSTOM},
            "source": {"path": "evals/x.ts", "row": None},
        }
    ]


async def test_the_named_evaluator_replaces_the_evals_own(inspector: Inspector) -> None:
    """An eval that names its evaluator's module is compiled to the key alone."""
    named = '{ id: "e", prompt: "p", evaluate: { kind: "custom", evaluatorKey: "k", sourcePath: "s" } }'
    (case,) = await emitted(inspector, named, evaluate=CUSTOM)
    assert isinstance(case, dict)
    assert case["checks"] == {"evaluate": CUSTOM}


async def test_cases_inherit_and_override(inspector: Inspector) -> None:
    """A case's own value replaces the eval's whole value, an empty list included."""
    source = """{
      id: "e", title: "Eval", description: "shared", systemPrompt: "be brief", tools: ["t"],
      evaluate: { kind: "non_empty" },
      cases: [
        { id: "a", prompt: " p " },
        { id: "b", prompt: "q", description: "own", systemPrompt: "", tools: [], data: { z: 1, a: [] },
          evaluate: { kind: "exact", expected: "x" } },
      ],
    }"""
    first, second = await emitted(inspector, source)
    assert first == {
        "id": "a",
        "evalId": "e",
        "title": "Eval — a",
        "description": "shared",
        "input": {"prompt": "p", "systemPrompt": "be brief", "tools": ["t"]},
        "data": None,
        "checks": {"evaluate": {"kind": "non_empty"}},
        "source": {"path": "evals/x.ts", "row": 1},
    }
    assert second == {
        "id": "b",
        "evalId": "e",
        "title": "Eval — b",
        "description": "own",
        "input": {"prompt": "q", "systemPrompt": "", "tools": []},
        "data": {"z": 1, "a": []},
        "checks": {"evaluate": {"kind": "exact", "expected": "x"}},
        "source": {"path": "evals/x.ts", "row": 2},
    }


async def test_lines_are_written_as_javascript_writes_them(inspector: Inspector) -> None:
    """Key order as authored, numbers and escapes as `JSON.stringify` has them, characters as themselves."""
    data = '\n{"data":{"b":1.0,"10":1e21,"a":"\u2028\\u0001é"},"prompt":"p","id":"c"}\n'.encode()
    inspection = await inspector.inspect(export('{ id: "e", evaluate: { kind: "non_empty" }, cases: "./x.jsonl" }'))
    handle = (await inspector.read_jsonl(data)).handle
    line = await inspector.emit(inspection.handle, handle, path="x.ts", rows_path="x.jsonl", evaluate=None)
    assert line.decode() == (
        '{"id":"c","evalId":"e","title":"e — c","description":"","input":{"prompt":"p","systemPrompt":null,"tools":[]},'
        '"data":{"10":1e+21,"b":1,"a":"\u2028\\u0001é"},"checks":{"evaluate":{"kind":"non_empty"}},'
        '"source":{"path":"x.jsonl","row":2}}\n'
    )


async def test_titles_are_cut_outside_surrogate_pairs(inspector: Inspector) -> None:
    """A title has at most 120 UTF-16 units and never half of a pair."""
    titles: list[JsonValue] = []
    for title in ("x" * 119 + "😀", "x" * 118 + "😀", "😀" * 70):
        (case,) = await emitted(
            inspector, f'{{ id: "e", title: "{title}", prompt: "p", evaluate: {{ kind: "non_empty" }} }}'
        )
        assert isinstance(case, dict)
        titles.append(case["title"])
    assert titles == ["x" * 119, "x" * 118 + "😀", "😀" * 60]


async def test_handles_outlive_the_process(inspector: Inspector) -> None:
    """A later module that hangs costs nothing of what was read before."""
    kept = await inspector.inspect(export('{ id: "e", prompt: "p", evaluate: { kind: "non_empty" } }'))
    await inspector.inspect(b"for (;;);")
    lines = await inspector.emit(kept.handle, None, path="x.ts", rows_path=None, evaluate=None)
    assert lines.startswith(b'{"id":"e"')

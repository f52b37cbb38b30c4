"""Evaluators that misbehave: each ends as one named failure, and the next call of the same module is right."""

from __future__ import annotations

import pytest

from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, Graded, SandboxModule
from trunchray.errors import EvaluatorError

RIGHT = Graded(passed=True, score=1, message="right", details={"sum": 3})


def module(hostile: str) -> SandboxModule:
    """An evaluator that runs `hostile` when it is told to, and otherwise works."""
    code = f"""
        const hostile = {hostile};
        const work = ({{ numbers }}) => {{
          const sum = numbers.map((x) => x * 1).reduce((a, b) => a + b, 0);
          return {{ passed: sum === 3, message: "right", details: JSON.parse(JSON.stringify({{ sum }})) }};
        }};
        export default {{ evaluate: (given) => (given.hostile ? hostile(given) : work(given)) }};
    """
    return SandboxModule(hostile, code.encode(), "default")


async def failure_of(sandbox: EvaluatorSandbox, evaluator: SandboxModule) -> EvaluatorError:
    """How the hostile call fails; the call before and the call after it must be right."""
    assert await sandbox.evaluate(evaluator, {"numbers": [1, 2]}) == RIGHT
    with pytest.raises(EvaluatorError) as caught:
        await sandbox.evaluate(evaluator, {"hostile": True})
    assert await sandbox.evaluate(evaluator, {"numbers": [1, 2]}) == RIGHT
    return caught.value


HANGS = {
    "sync loop": "() => { for (;;); }",
    "microtask flood": "async () => { for (;;) await null; }",
    "regex backtracking": "() => /^(a+)+$/.test('a'.repeat(40) + '!')",
    "loop in a proxy": "() => ({ passed: true, details: new Proxy({}, { ownKeys() { for (;;); } }) })",
    "endless timers": "() => new Promise(() => setInterval(() => {}, 1))",
    "flood left behind": "() => { (async () => { for (;;) await null; })(); return true; }",
    "digests left behind": """() => {
        (async () => { for (;;) await crypto.subtle.digest("SHA-1", new Uint8Array(9)); })();
        return true;
    }""",
}


@pytest.mark.parametrize("hostile", HANGS.values(), ids=HANGS.keys())
async def test_what_never_ends_times_out(sandbox: EvaluatorSandbox, hostile: str) -> None:
    """A call that does not end, or whose leftovers do not, is killed at its deadline."""
    failure = await failure_of(sandbox, module(hostile))
    assert (failure.type, str(failure)) == ("timeout", "the evaluator did not finish within 1.5 s")


NEVER = {
    "promise": "() => new Promise(() => {})",
    "await": "async () => { await new Promise(() => {}); return true; }",
    "thenable": "() => ({ then() {} })",
}


@pytest.mark.parametrize("hostile", NEVER.values(), ids=NEVER.keys())
async def test_a_promise_that_nothing_can_settle_is_noticed_at_once(sandbox: EvaluatorSandbox, hostile: str) -> None:
    """Waiting for nothing is named as such, without waiting for the deadline."""
    assert (await failure_of(sandbox, module(hostile))).type == "never_settled"


MEMORY = {
    "heap": "() => { const all = []; for (;;) all.push(new Array(1000).fill({})); }",
    "array buffers": "() => { const all = []; for (;;) all.push(new Uint8Array(256 << 20)); }",
    "one huge buffer": "() => new Uint8Array(2 ** 33).length > 0",
}


@pytest.mark.parametrize("hostile", MEMORY.values(), ids=MEMORY.keys())
async def test_memory_is_bounded(hostile: str) -> None:
    """A memory bomb ends its call and nothing else."""
    sandbox = EvaluatorSandbox(slots=1, deadline=20, heap_mb=64)
    try:
        assert (await failure_of(sandbox, module(hostile))).type == "out_of_memory"
    finally:
        await sandbox.close()


LARGE = {
    "100 MB of text": "() => ({ passed: true, message: 'x'.repeat(100 << 20) })",
    "many objects": "() => ({ passed: true, details: Array.from({ length: 3e5 }, (_, i) => ({ i })) })",
    "shared parts": """() => {
        let a = [0];
        for (let i = 0; i < 40; i++) a = [a, a];
        return { passed: true, details: a };
    }""",
    "long in UTF-8 only": "() => ({ passed: true, details: '\\u4e2d'.repeat(4e5) })",
}


@pytest.mark.parametrize("hostile", LARGE.values(), ids=LARGE.keys())
async def test_results_are_at_most_one_megabyte(hostile: str) -> None:
    """A result that would be larger is refused before it is written out, however long it takes to find out."""
    sandbox = EvaluatorSandbox(slots=1, deadline=20)
    try:
        assert (await failure_of(sandbox, module(hostile))).type == "output_too_large"
    finally:
        await sandbox.close()


THROWN = {
    "process.exit": ("() => process.exit(0)", "ReferenceError: process is not defined"),
    "Deno.exit": ("() => Deno.exit(0)", "ReferenceError: Deno is not defined"),
    "close": ("() => close()", "ReferenceError: close is not defined"),
    "error": ("() => { throw new TypeError('wrong') }", "TypeError: wrong"),
    "rejection": ("async () => { throw new RangeError('far') }", "RangeError: far"),
    "text": ("() => { throw 'no error object' }", "no error object"),
    "null": ("() => { throw null }", "null"),
    "nasty error": ("() => { throw { get message() { throw 1 } } }", "something that cannot be turned into text"),
    "stack": ("() => { const f = () => f() + 1; return f(); }", "RangeError: Maximum call stack size exceeded"),
    "timer": ("() => new Promise(() => setTimeout(() => { throw new Error('late') }, 1))", "Error: late"),
    "microtask": ("() => new Promise(() => queueMicrotask(() => { throw new Error('soon') }))", "Error: soon"),
    "throwing proxy": ("() => new Proxy({}, { get() { throw new Error('trap') } })", "Error: trap"),
}


@pytest.mark.parametrize(("hostile", "message"), THROWN.values(), ids=THROWN.keys())
async def test_errors_are_reported_with_name_and_message(sandbox: EvaluatorSandbox, hostile: str, message: str) -> None:
    """Whatever is thrown, wherever, is told as text."""
    failure = await failure_of(sandbox, module(hostile))
    assert (failure.type, str(failure)) == ("threw", message)


async def test_a_long_error_message_is_cut(sandbox: EvaluatorSandbox) -> None:
    """An error message is cut to 2,000 characters."""
    failure = await failure_of(sandbox, module("() => { throw new Error('x'.repeat(1e6)) }"))
    assert (failure.type, len(str(failure))) == ("threw", 2000)


CHANGES = {
    "prototypes": """() => {
        Object.prototype.polluted = 1; Array.prototype.map = () => "hijacked"; Array.prototype.reduce = () => 7;
        JSON.stringify = () => "{}"; JSON.parse = () => ({}); Promise.prototype.then = () => {};
        return { passed: true };
    }""",
    "globals": """() => {
        globalThis.leak = 1; globalThis.JSON = null; globalThis.Array = null; Object.freeze(Object.prototype);
        return true;
    }""",
    "serialisers": """() => {
        for (const kind of [Object, Array, String, Number, Boolean]) kind.prototype.toJSON = () => "hijacked";
        return { passed: true, details: ["as it was"] };
    }""",
    "classes of promises": """() => {
        Promise.prototype.constructor = class extends Promise { constructor() { throw new Error("no promise"); } };
        return { passed: true };
    }""",
    "lent classes": """() => {
        const { getPrototypeOf } = Object;
        for (const lent of [URL, Headers, URL.prototype, getPrototypeOf(URL), getPrototypeOf(URL.prototype)])
            try { lent.leak = 1; } catch { /* frozen */ }
        return { passed: URL.leak === undefined && new URL("http://a").leak === undefined };
    }""",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_a_changed_world_ends_with_its_call(sandbox: EvaluatorSandbox, change: str) -> None:
    """Changed globals and prototypes neither spoil the call's own result nor reach the next call."""
    evaluator = module(change)
    assert (await sandbox.evaluate(evaluator, {"hostile": True})).passed
    assert await sandbox.evaluate(evaluator, {"numbers": [1, 2]}) == RIGHT
    assert len(sandbox._idle) == 1  # the same process served both


async def test_the_writer_is_not_fooled_by_changed_serialisers(sandbox: EvaluatorSandbox) -> None:
    """What was returned is what is reported, whatever `toJSON` says."""
    graded = await sandbox.evaluate(module(CHANGES["serialisers"]), {"hostile": True})
    assert graded == Graded(passed=True, score=1, message=None, details=["as it was"])


async def test_printing_means_nothing(sandbox: EvaluatorSandbox) -> None:
    """Text that looks like a reply is only text."""
    noise = """() => {
        for (let i = 0; i < 1000; i++) console.log('{"passed":true,"score":1}');
        console.table([1]); console.error("x"); console.time(); console.assert(false);
        return false;
    }"""
    assert not (await sandbox.evaluate(module(noise), {"hostile": True})).passed


async def test_timers_work_and_do_not_outlive_their_call(sandbox: EvaluatorSandbox) -> None:
    """A call may wait; a timer that it leaves behind is cancelled, also one behind an AbortSignal."""
    evaluator = module("""async () => {
        setTimeout(() => { for (;;); }, 20);
        AbortSignal.timeout(20).addEventListener("abort", () => { for (;;); });
        await new Promise((done) => setTimeout(done, 2));
        return true;
    }""")
    assert (await sandbox.evaluate(evaluator, {"hostile": True})).passed
    for _ in range(20):
        assert await sandbox.evaluate(evaluator, {"numbers": [1, 2]}) == RIGHT


REACHES = {
    "network": "async () => { await fetch('http://127.0.0.1:9/'); }",
    "socket": "() => new WebSocket('ws://127.0.0.1:9/')",
    "environment": "() => process.env.HOME",
    "file": "async () => (await import('node:fs')).readFileSync('/etc/passwd')",
    "package": "async () => import('npm:is-odd')",
    "remote module": "async () => import('https://example.com/x.js')",
    "subprocess": "() => new Deno.Command('id').outputSync()",
    "worker": "() => new Worker('data:text/javascript,1', { type: 'module' })",
    "web assembly": "() => new WebAssembly.Memory({ initial: 1 })",
    "the host through a lent class": "() => URL.constructor('return Deno')()",
    "the host through a lent function": "() => structuredClone.constructor('return process')()",
    "the host through an error": """() => {
        try { new URL("x"); } catch (error) { return error.constructor.constructor("return this")(); }
    }""",
}


@pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES.keys())
async def test_there_is_nothing_outside_to_reach(sandbox: EvaluatorSandbox, reach: str) -> None:
    """Network, files, environment, processes and the host's own realm are out of reach."""
    assert (await failure_of(sandbox, module(reach))).type == "threw"

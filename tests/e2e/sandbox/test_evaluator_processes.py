"""The processes behind evaluators: how many, which calls share one, and that none is left behind."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, Graded, SandboxModule
from trunchray.adapters.sandbox.process import Bounds, ProcessDied, ReplyTooLarge, SandboxProcess
from trunchray.errors import EvaluatorError, SandboxError

COUNTER = b"""
    globalThis.calls = (globalThis.calls ?? 0) + 1;
    let inModule = 0;
    export default { async evaluate({ n, wait }) {
      if (wait) await new Promise((done) => setTimeout(done, wait));
      return { passed: n % 2 === 0, score: 1 / (n + 1), details: [n, ++inModule, globalThis.calls] };
    } };
"""


def counter(key: str = "counter") -> SandboxModule:
    return SandboxModule(key, COUNTER, "default")


def expected(n: int) -> Graded:
    return Graded(passed=n % 2 == 0, score=1 / (n + 1), message=None, details=[n, 1, 1])


async def test_results_do_not_depend_on_grouping(sandbox: EvaluatorSandbox) -> None:
    """The same calls give the same results in any order, at once or one by one, mixed with other modules."""
    forward = [await sandbox.evaluate(counter(), {"n": n}) for n in range(12)]
    mixed = await asyncio.gather(*(sandbox.evaluate(counter(f"m{n % 3}"), {"n": n}) for n in reversed(range(12))))
    assert forward == list(reversed(mixed)) == [expected(n) for n in range(12)]


async def test_at_most_slots_calls_run_at_once_and_waiting_is_free() -> None:
    """Ten calls of half a second through one slot all finish within a deadline of one and a half."""
    sandbox = EvaluatorSandbox(slots=1, deadline=1.5)
    graded = await asyncio.gather(*(sandbox.evaluate(counter(), {"n": n, "wait": 200}) for n in range(10)))
    assert graded == [expected(n) for n in range(10)]
    assert len(sandbox._idle) == 1
    await sandbox.close()


async def test_idle_processes_are_kept_for_the_modules_used_last() -> None:
    """No more than `keep` wait, and a module whose process is gone gets another."""
    sandbox = EvaluatorSandbox(slots=1, keep=2)
    for name in ("a", "b", "c", "b", "a"):
        assert await sandbox.evaluate(counter(name), {"n": 1}) == expected(1)
    assert [worker.module[0] for worker in sandbox._idle] == ["b", "a"]
    await sandbox.close()


async def test_a_process_is_replaced_after_its_share_of_calls(sandbox: EvaluatorSandbox) -> None:
    """After 2,000 calls, or 30 s of work, the next call starts a process without a past."""
    seen = set()
    for spent in ({"calls": 2000}, {"busy": 30.0}, {}):
        assert await sandbox.evaluate(counter(), {"n": 0}) == expected(0)
        (worker,) = sandbox._idle
        seen.add(worker.process.pid)
        for name, value in spent.items():
            setattr(worker, name, value)
    assert len(seen) == 3


async def test_a_process_that_dies_while_idle_is_not_used(sandbox: EvaluatorSandbox) -> None:
    """The next call is right when the system has killed an idle process meanwhile."""
    await sandbox.evaluate(counter(), {"n": 0})
    os.killpg(sandbox._idle[0].process.pid, signal.SIGKILL)
    assert await sandbox.evaluate(counter(), {"n": 1}) == expected(1)


async def killed_in_flight(sandbox: EvaluatorSandbox, *, earlier_calls: int) -> Graded:
    """A call whose process is killed while it runs."""
    await sandbox.evaluate(counter(), {"n": 0})
    (worker,) = sandbox._idle
    worker.calls = earlier_calls
    call = asyncio.create_task(sandbox.evaluate(counter(), {"n": 1, "wait": 500}))
    while sandbox._idle:  # noqa: ASYNC110, the call takes the worker in the next turns of the loop
        await asyncio.sleep(0)
    os.killpg(worker.process.pid, signal.SIGKILL)
    return await call


async def test_a_call_whose_fresh_process_is_killed_has_crashed(sandbox: EvaluatorSandbox) -> None:
    """Death by a signal in the first call of a process is a crash of that call."""
    with pytest.raises(EvaluatorError) as caught:
        await killed_in_flight(sandbox, earlier_calls=0)
    assert caught.value.type == "crashed"
    assert "signal 9" in str(caught.value)


async def test_a_call_does_not_die_of_its_predecessors(sandbox: EvaluatorSandbox) -> None:
    """When a process that served other calls dies, the call is repeated in a fresh one."""
    assert await killed_in_flight(sandbox, earlier_calls=1) == expected(1)


async def test_a_cancelled_call_takes_its_process_along(sandbox: EvaluatorSandbox) -> None:
    """Cancelling a call, also before its process is ready, leaves nothing running and the slot free."""
    for _ in range(2):
        for turns in (0, 1, 3, 200):
            call = asyncio.create_task(sandbox.evaluate(counter(), {"n": 1, "wait": 60_000}))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert await sandbox.evaluate(counter(), {"n": 1}) == expected(1)


async def test_no_process_group_is_left_after_close_or_kill() -> None:
    """After a timeout and after `close`, the process groups are gone."""
    sandbox = EvaluatorSandbox(slots=1, deadline=0.3)
    await sandbox.evaluate(counter(), {"n": 1})
    killed = sandbox._idle[0].process.pid
    with pytest.raises(EvaluatorError, match=r"0\.3 s"):
        await sandbox.evaluate(counter(), {"n": 1, "wait": 60_000})
    await sandbox.evaluate(counter(), {"n": 1})
    closed = sandbox._idle[0].process.pid
    await sandbox.close()
    for group in (killed, closed):
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)


def test_idle_processes_end_when_python_is_killed() -> None:
    """A sandbox whose owner got SIGKILL notices the closed pipe and ends by itself."""
    script = """
import asyncio, os, signal
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
async def main():
    sandbox = EvaluatorSandbox(slots=1)
    await sandbox.evaluate(SandboxModule("k", b"export default { evaluate: () => true };", "default"), {})
    print(sandbox._idle[0].process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        orphan = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    assert select.select([orphan], [], [], 60)[0]
    os.close(orphan)


def environment(pid: int) -> dict[str, str]:
    """What the process itself would find if it could look."""
    entries = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
    return dict(entry.split("=", 1) for entry in entries)


async def test_what_a_process_may_use_is_bounded_from_outside() -> None:
    """Hard limits of memory and CPU time stand before the process has seen any code; its environment is ours alone."""
    bounds = Bounds(heap_mb=64, cpu_seconds=150, max_reply=1000)
    process = await SandboxProcess.start("evaluator_host.mjs", bounds)
    assert resource.prlimit(process.pid, resource.RLIMIT_CPU) == (150, 150)
    assert resource.prlimit(process.pid, resource.RLIMIT_DATA) == ((64 + 850) << 20, (64 + 850) << 20)
    assert os.getpgid(process.pid) == process.pid
    assert environment(process.pid) == SANDBOX_ENVIRONMENT
    await process.close()


async def test_a_process_that_ends_by_itself_tells_its_code_and_its_last_words() -> None:
    """Death carries the exit code, or minus the signal, and the end of what was printed."""
    process = await SandboxProcess.start("evaluator_host.mjs", Bounds(64, 150, 1000))
    with pytest.raises(ProcessDied) as caught:
        await process.call(b"not a head", 30)
    assert caught.value.code == 1
    assert "SyntaxError" in caught.value.log
    assert not process.usable


async def test_an_oversized_reply_is_not_read() -> None:
    """A reply that announces more than is allowed kills its process."""
    process = await SandboxProcess.start("evaluator_host.mjs", Bounds(64, 150, max_reply=10))
    with pytest.raises(ReplyTooLarge):
        await process.call(b'{"export":"default"}\nexport default {', 30)
    await process.close()


async def test_a_deno_that_cannot_start_is_a_retryable_sandbox_error() -> None:
    """Trying again may help when the machine, not the evaluator, is at fault: here it has no memory to give."""
    sandbox = EvaluatorSandbox(slots=1, heap_mb=-840)
    with pytest.raises(SandboxError) as caught:
        await sandbox.evaluate(counter(), {"n": 1})
    assert (caught.value.type, caught.value.retryable) == ("start_failed", True)
    await sandbox.close()

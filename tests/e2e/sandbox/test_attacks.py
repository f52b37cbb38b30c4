"""Attacks, each tried behind one wall alone and behind all of them; what becomes of each is a line of the table.

Under `flags` stands what becomes of it as a plain program under Deno's flags alone; under `stack` as an evaluator, with
everything that an evaluator has around it; under `system` with all of Deno's permissions, in native code where that
matters, behind the operating system's walls alone. "open" means that the attack got what it wanted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.attacked import ATTACKS, SECRET, Outcome, Target, attacked, let_loose
from trunchray.adapters.sandbox.child import Child
from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT, binary, sandbox_command, sandbox_walls
from trunchray.adapters.sandbox.evaluators import EvaluatorSandbox, SandboxModule
from trunchray.adapters.sandbox.launcher import sandbox_level, start
from trunchray.adapters.sandbox.plain_child import PlainChild
from trunchray.errors import EvaluatorError

TABLE = """
fetch                       shut  shut    shut
fetch_local_name            shut  shut    shut
fetch_keepalive             shut  shut    shut
deno_connect                shut  shut    shut
deno_tls                    shut  shut    shut
deno_listen                 shut  shut    shut
deno_serve                  shut  shut    shut
node_net                    shut  shut    shut
node_http                   shut  shut    shut
node_http2                  shut  shut    shut
node_tls                    shut  shut    shut
node_listen                 shut  shut    shut
node_udp                    shut  shut    shut
dns_lookup                  shut  shut    shut
dns_query                   shut  shut    shut
websocket                   shut  shut    shut
websocket_stream            shut  shut    shut
event_source                shut  shut    shut
quic                        shut  shut    shut
web_transport               shut  shut    shut
import_http                 shut  shut    shut
import_https                shut  shut    shut
import_npm                  shut  shut    shut
import_jsr                  shut  shut    shut
wasm_streaming              shut  shut    shut
inspector                   shut  shut    shut
unix_socket                 shut  shut    shut
unix_socket_deno            shut  shut    shut
abstract_socket             shut  shut    shut
vsock                       died  shut    died
read_deno                   shut  shut    shut
read_node                   shut  shut    shut
read_promise                shut  shut    shut
read_stream                 shut  shut    shut
read_link                   shut  shut    shut
read_folder                 shut  shut    shut
read_fetch                  shut  shut    shut
read_import_json            shut  shut    shut
read_import_text            shut  shut    shut
read_import_module          shut  shut    shut
read_require                shut  shut    shut
read_sqlite                 shut  shut    shut
read_own_environment        shut  shut    shut
read_other_environment      shut  shut    shut
read_other_memory           shut  shut    shut
read_other_root             shut  shut    shut
read_own_root               shut  shut    shut
read_own_program            shut  shut    open
read_passwords              shut  shut    shut
see_that_it_exists          shut  shut    open
see_size                    shut  shut    open
write_deno                  shut  shut    shut
write_node                  shut  shut    shut
truncate                    shut  shut    shut
remove                      shut  shut    shut
rename                      shut  shut    shut
make_link                   shut  shut    shut
make_hard_link              shut  shut    shut
make_folder                 shut  shut    shut
make_temporary              shut  shut    shut
change_mode                 shut  shut    shut
change_times                shut  shut    shut
watch                       shut  shut    shut
write_sqlite                shut  shut    shut
vacuum_sqlite               shut  shut    shut
heap_snapshot               shut  shut    shut
diagnostic_report           shut  shut    shut
local_storage               shut  shut    shut
cache_api                   shut  shut    shut
key_value_store             shut  shut    shut
environment_deno            shut  shut    shut
environment_node            shut  shut    shut
environment_all             shut  shut    open
run_deno                    shut  shut    shut
run_node                    shut  shut    shut
run_shell                   shut  shut    shut
run_itself                  shut  shut    shut
signal_parent               shut  shut    shut
signal_deno                 shut  shut    shut
priority_of_parent          shut  shut    shut
native_library              shut  shut    open
native_addon                shut  shut    shut
internal_binding            open  shut    open
internal_operations         open  shut    open
ask_permission              shut  shut    open
worker_with_more            died  shut    died
worker_remote               shut  shut    died
bundle_others               shut  shut    shut
become_another_user         shut  shut    shut
set_flags_of_v8             open  shut    open
worker                      -     stopped stopped
node_worker                 -     stopped stopped
many_workers                -     stopped stopped
fork_bomb                   -     stopped stopped
memory_heap                 -     stopped stopped
memory_buffers              -     stopped stopped
memory_wasm                 -     stopped stopped
memory_strings              -     stopped stopped
endless_loop                -     stopped stopped
endless_microtasks          -     stopped stopped
atomic_wait                 -     stopped stopped
output                      -     open    open
abort                       -     stopped stopped
leave                       -     stopped stopped
function_of_lent_class      shut  shut    open
function_of_lent_function   shut  shut    open
function_of_lent_instance   shut  shut    open
function_of_error           shut  shut    open
function_of_promise         shut  shut    open
function_of_async           shut  shut    open
function_of_event           shut  shut    open
function_of_stream          shut  shut    open
function_of_clone           shut  shut    open
function_of_timer           shut  shut    open
functions_of_the_stack      shut  shut    shut
functions_of_a_host_error   shut  shut    shut
import_in_borrowed_function shut  shut    open
eval_indirect               shut  shut    open
poison_host_object          open  shut    open
poison_host_promise         shut  shut    shut
accessor_of_host_fields     open  shut    open
delete_lent                 open  shut    open
wasm                        open  shut    open
shared_memory               open  shut    open
shared_memory_of_wasm       open  shut    open
call_after_collection       open  shut    open
channel_to_others           open  shut    open
forge_reply_by_name         open  shut    open
forge_reply_by_proc         shut  shut    open
forge_reply_by_number       shut  shut    shut
forge_reply_on_stdout       open  shut    open
read_requests               open  shut    open
read_requests_of_deno       open  shut    open
core_resources              open  shut    open
next_request                open  shut    open
native_open                 -     -       shut
native_open_link            -     -       shut
native_create               -     -       shut
native_unlink               -     -       shut
native_execute              -     -       shut
native_socket               -     -       shut
native_netlink              -     -       shut
native_unix                 -     -       shut
native_fork                 -     -       shut
native_clone3               -     -       shut
native_kill                 -     -       shut
native_kill_thread          -     -       shut
native_trace                -     -       shut
native_read_memory          -     -       shut
native_limit_other          -     -       shut
native_raise_limit          -     -       shut
native_outlive              -     -       shut
native_user_namespace       -     -       shut
native_memory_file          -     -       shut
native_stat                 -     -       open
native_getppid              -     -       open
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
EXPECTED = {name: {"flags": flags, "stack": stack, "system": system} for name, flags, stack, system in ROWS}
REAL = """
fetch fetch_local_name fetch_keepalive deno_connect deno_tls deno_listen deno_serve node_net node_http node_http2
node_tls node_listen node_udp dns_lookup inspector unix_socket unix_socket_deno abstract_socket
read_deno read_node read_promise read_stream read_link read_folder read_fetch read_import_json read_import_text
read_import_module read_require read_sqlite read_own_environment read_other_root read_own_root read_own_program
read_passwords see_that_it_exists see_size write_deno write_node truncate remove make_link make_hard_link make_folder
make_temporary change_mode change_times watch write_sqlite vacuum_sqlite heap_snapshot local_storage cache_api
environment_deno environment_node environment_all run_deno run_node run_shell run_itself signal_parent native_library
ask_permission function_of_lent_class function_of_error function_of_promise function_of_event
eval_indirect forge_reply_by_name forge_reply_by_proc
"""
"""Those that succeed wherever nothing hinders them."""

RUNNER = str(ATTACKS / "runner.mjs")
WALLS = sandbox_walls((str(ATTACKS),), data_bytes=914 << 20, resident_bytes=400 << 20, cpu_seconds=60)
ALL_PERMISSIONS = (
    "-A", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--v8-flags=--max-old-space-size=64",
)  # fmt: skip
FATAL = re.findall(r"^  (\w+):", (ATTACKS / "processes.mjs").read_text().partition("export const fatal")[2], re.M)

needs_walls = pytest.mark.skipif(sandbox_level() != "landlock+seccomp", reason="this kernel lacks Landlock or seccomp")


def under_flags(files: Sequence[int]) -> Child:
    return PlainChild(sandbox_command(RUNNER, 3, heap_mb=64), files, cwd="/", env=SANDBOX_ENVIRONMENT, walls=WALLS)


def behind_walls(files: Sequence[int]) -> Child:
    return start([binary(), "run", *ALL_PERMISSIONS, RUNNER], files, cwd="/", env=SANDBOX_ENVIRONMENT, walls=WALLS)


def expected(wall: str) -> dict[str, str]:
    return {name: kinds[wall] for name, kinds in EXPECTED.items() if kinds[wall] != "-"}


def kind(name: str, outcome: Outcome) -> str:
    """Whether a flood dies of a limit or at its deadline depends on the machine's speed."""
    return "stopped" if name in FATAL and outcome.kind != "open" else outcome.kind


def kinds(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: kind(name, outcome) for name, outcome in outcomes.items()}


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setenv("ATTACKED_SECRET", SECRET)
    with attacked(tmp_path) as target:
        yield target


def test_attacks_work_where_nothing_stands_in_their_way(target: Target) -> None:
    """Without any wall those that need nothing unusual succeed: what stops them elsewhere is a wall."""
    environment = {**os.environ, "DENO_DIR": str(target.folder / "deno"), "TMPDIR": str(target.folder)}
    command = [binary(), "run", *ALL_PERMISSIONS, RUNNER]

    def unhindered(files: Sequence[int]) -> Child:
        return PlainChild(command, files, cwd="/", env=environment, walls=WALLS)

    real = REAL.split()
    outcomes, _ = let_loose(unhindered, real, target.at, deadline=30)
    assert {name: outcome for name, outcome in outcomes.items() if outcome.kind != "open"} == {}
    assert len(target.egress()) > 10
    assert "written" in target.changes()


def test_denos_flags_alone(target: Target) -> None:
    """Nothing leaves the process but to its own pipes: no network, no file, no process, no environment."""
    outcomes, forged = let_loose(under_flags, [*expected("flags")], target.at, deadline=30)
    assert kinds(outcomes) == expected("flags")
    assert (target.egress(), target.changes()) == ([], [])
    assert forged.count(b"forged") == 1  # a plain program owns its reply pipe; an evaluator does not


@needs_walls
def test_the_operating_system_alone(target: Target) -> None:
    """With every permission of Deno and with native code, still no network, no file, no process of others."""
    quiet = {name: kind for name, kind in expected("system").items() if name not in FATAL}
    outcomes, _ = let_loose(behind_walls, [*quiet], target.at, deadline=30)
    assert kinds(outcomes) == quiet
    assert (target.egress(), target.changes()) == ([], [])


@needs_walls
def test_no_listed_system_call_reaches_the_kernel(target: Target) -> None:
    """Each is refused to native code, whatever its arguments."""
    outcomes, _ = let_loose(behind_walls, ["sweep"], target.at, deadline=30)
    assert outcomes["sweep"] == Outcome("open", {})


@needs_walls
@pytest.mark.parametrize("name", FATAL)
def test_floods_end_with_their_process(target: Target, name: str) -> None:
    """With every permission of Deno: what eats memory, processes or time dies of a limit or at its deadline."""
    outcomes, _ = let_loose(behind_walls, [name], target.at, deadline=2)
    assert kinds(outcomes) == {name: EXPECTED[name]["system"]}
    assert (target.egress(), target.changes()) == ([], [])


def as_evaluator() -> SandboxModule:
    """All attacks in one module; what they forge cannot look like what it returns."""
    files = [ATTACKS / f"{name}.mjs" for name in ("network", "files", "processes", "realm")]
    blocks = [f"{{ {path.read_text().replace('export const ', 'all.')} }}" for path in files]
    code = f"""
        const all = {{}};
        {chr(10).join(blocks)}
        const attacks = Object.assign({{}}, ...Object.values(all));
        export default {{ async evaluate({{ name, at }}) {{
          try {{
            const got = await attacks[name](at);
            return {{ passed: true, message: `${{name}} got ${{got}}` }};
          }} catch (error) {{
            return {{ passed: false, message: `${{name}} failed: ${{error}}` }};
          }}
        }} }};
    """
    return SandboxModule("attacks", code.encode(), "default")


async def as_evaluated(sandbox: EvaluatorSandbox, name: str, at: dict[str, Any]) -> Outcome:
    try:
        graded = await sandbox.evaluate(as_evaluator(), {"name": name, "at": at})
    except EvaluatorError as e:
        return Outcome(e.type, str(e))
    assert (graded.message or "").startswith(name)
    return Outcome("open" if graded.passed else "shut", graded.message)


async def test_the_whole_stack(target: Target, sandbox: EvaluatorSandbox) -> None:
    """As evaluators, attacks find nothing at all, and what they leave behind does not spoil the next call."""
    outcomes = {name: await as_evaluated(sandbox, name, target.at) for name in expected("stack")}
    assert kinds(outcomes) == expected("stack")
    assert (target.egress(), target.changes()) == ([], [])

"""The command line and the environments of Deno, without starting it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from trunchray.adapters.sandbox import evaluators
from trunchray.adapters.sandbox.deno import SANDBOX_ENVIRONMENT, deno_version, install_environment, sandbox_command
from trunchray.adapters.sandbox.host import parsed
from trunchray.adapters.sandbox.process import CallTimeout, ProcessDied, ProcessFailure, ProtocolBroken, ReplyTooLarge


def test_the_sandbox_may_write_to_its_reply_pipe_and_nothing_else() -> None:
    """Nothing is allowed but one file descriptor; every way to fetch modules is shut."""
    command = sandbox_command("evaluator_host.mjs", 17, heap_mb=128)
    assert [part for part in command if part.startswith("--allow")] == ["--allow-write=/dev/fd/17"]
    assert {"--no-prompt", "--no-remote", "--no-npm", "--cached-only", "--no-config", "--ignore-env"} < set(command)
    assert command[-2].endswith("sandbox_host/evaluator_host.mjs")
    assert command[-1] == "17"
    assert Path(command[-2]).is_file()


def test_realms_that_come_and_go_are_collected_whole() -> None:
    """Every collection is one of the whole heap where `young_mb` says how often; elsewhere V8 decides."""
    (flags,) = (
        part for part in sandbox_command("x.mjs", 3, heap_mb=128, young_mb=16) if part.startswith("--v8-flags=")
    )
    assert {"--min-semi-space-size=16", "--max-semi-space-size=16", "--gc-global"} < set(flags.split(","))
    assert not any("semi-space" in part for part in sandbox_command("tools_host.mjs", 3, heap_mb=128))


def test_the_sandbox_environment_is_the_same_everywhere() -> None:
    """Time zone and language are fixed, and nothing of ours is in it."""
    assert set(SANDBOX_ENVIRONMENT) == {"DENO_DIR", "DENO_NO_UPDATE_CHECK", "LC_ALL", "NO_COLOR", "TZ"}


def test_installing_sees_proxies_and_certificates_but_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed to reach the registry is passed on; keys of model providers are not."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    environment = install_environment(tmp_path)
    assert environment["HTTPS_PROXY"] == "http://proxy"
    assert environment["no_proxy"] == "localhost"
    assert environment["DENO_DIR"] == str(tmp_path)
    assert "OPENAI_API_KEY" not in environment


def test_the_runtime_version_is_known_without_running_it() -> None:
    """It is the version of the installed package."""
    assert deno_version().startswith("2.")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"a": "\ud800"}, '{"a":"\\ud800"}'),
        ({"a": "中"}, '{"a":"\\u4e2d"}'),
        ({"a": [float("nan"), {"b": float("inf")}, 1.5]}, '{"a":[null,{"b":null},1.5]}'),
    ],
)
def test_input_is_ascii_json(given: dict[str, JsonValue], text: str) -> None:
    """Half a surrogate pair survives as an escape; what JSON cannot carry is null, as in JavaScript."""
    assert evaluators._encoded(given).decode() == text


FAILURES = [
    (CallTimeout("x"), "timeout", "the evaluator did not finish within 2.5 s"),
    (ReplyTooLarge("x"), "output_too_large", "the evaluator returned more than 1,000,000 bytes of JSON"),
    (ProcessDied("x", code=3, log=""), "exited", "the evaluator ended its process (exit code 3)"),
    (ProcessDied("x", code=-5, log="# Fatal JavaScript out of memory: Reached"), "out_of_memory", "more memory"),
    (ProcessDied("the process ended with signal 11", code=-11, log="oops"), "crashed", "ended with signal 11; oops"),
]  # fmt: skip


@pytest.mark.parametrize(("failure", "type", "message"), FAILURES, ids=[case[1] for case in FAILURES])
def test_the_end_of_a_process_is_named(failure: ProcessFailure, type: str, message: str) -> None:
    """Each way to end has its own type, for people and for counting."""
    named = evaluators._named(failure, 2.5)
    assert named.type == type
    assert message in str(named)


@pytest.mark.parametrize("reply", [b"", b"[]", b"\xff", json.dumps("x").encode(), b"[" * 100_000])
def test_a_reply_that_is_no_object_breaks_the_protocol(reply: bytes) -> None:
    """Code that breaks out of its realm can write anything, and gets a failure for it."""
    with pytest.raises(ProtocolBroken):
        parsed(reply)


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"passed": True},
        {"passed": 1, "score": 1, "message": None, "details": None},
        {"passed": True, "score": float("inf"), "message": None, "details": None},
        {"passed": True, "score": 1, "message": 7, "details": None},
        {"type": "threw"},
    ],
    ids=str,
)
def test_a_reply_of_another_shape_breaks_the_protocol(reply: dict[str, JsonValue]) -> None:
    """Nothing but a verdict or a failure is taken from a process, and anything else is a crash of it."""
    with pytest.raises(ProtocolBroken) as caught:
        evaluators._checked(reply)
    assert evaluators._named(caught.value, 1).type == "crashed"

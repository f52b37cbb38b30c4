"""What a sandboxed process says is taken apart with care: code that breaks out of its realm can say anything."""

from __future__ import annotations

from typing import Any

import pytest

from trunchray.adapters.sandbox import inspector
from trunchray.adapters.sandbox.host import explained, out_of_memory, parts, reading, start_failure
from trunchray.adapters.sandbox.process import CallTimeout, ProcessDied, ProcessFailure, ProtocolBroken


@pytest.mark.parametrize("reply", [b"", b"\n{}", b"7\n{}", b"{\n}", b'{"a": \xff}\n', b"[" * 100_000 + b"\n"])
def test_the_first_line_of_a_reply_must_be_an_object(reply: bytes) -> None:
    """Anything else ends as a failure of the process, which its caller tells in words."""
    with pytest.raises(ProtocolBroken):
        parts(reply)


def test_what_follows_the_first_line_is_left_as_it_is() -> None:
    """The rest may be anything, line feeds included."""
    assert parts(b'{"flaws":[]}\n\xff\n\n') == ({"flaws": []}, b"\xff\n\n")


HEADS: list[dict[str, Any]] = [
    {},
    {"flaws": 7, "functions": []},
    {"flaws": [{"path": ""}], "functions": []},
    {"flaws": ["x"], "functions": []},
    {"flaws": [], "functions": None},
]


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_an_inspection_of_another_shape_breaks_the_protocol(head: dict[str, Any]) -> None:
    """It is no internal error: the module gets a flaw that says so."""
    with pytest.raises(ProtocolBroken) as caught:
        inspector._checked((head, b"null"))
    assert explained(caught.value, 10) == "the module cannot be read: the process broke its protocol"


def test_errors_of_our_own_are_not_taken_for_broken_replies() -> None:
    """Only what taking a value apart can raise counts."""
    with pytest.raises(ProcessFailure, match="own"), reading():
        raise ProcessFailure("its own")
    with pytest.raises(ZeroDivisionError), reading():
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (CallTimeout("x"), "the module was not evaluated within 2.5 s"),
        (ProcessDied("signal 5", log="oops", code=-5), "evaluating the module ended its process (signal 5): oops"),
    ],
    ids=["timeout", "death"],
)
def test_a_failure_is_told_in_the_words_of_the_author(failure: ProcessFailure, said: str) -> None:
    """What became of the module, and what its process said last."""
    assert explained(failure, 2.5) == said


def test_a_process_that_lacked_memory_has_said_so() -> None:
    """In any case of letters."""
    assert out_of_memory(ProcessFailure("x", log="# Fatal JavaScript Out of Memory: Reached heap limit"))
    assert not out_of_memory(ProcessFailure("x", log="# Fatal error"))


def test_a_process_that_does_not_start_may_start_the_next_time() -> None:
    """The error names the process, the cause and what the process said."""
    error = start_failure("Deno", ProcessFailure("no answer within 30 s", log="who knows"))
    assert (str(error), error.type, error.retryable) == (
        "Deno did not start: no answer within 30 s: who knows",
        "start_failed",
        True,
    )

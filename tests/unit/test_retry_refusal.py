"""What a provider's refusal means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunchray.adapters.models.refusal import Refusal, read_error, read_refusal, retry_after

NOW = 1_000_000_000.0


def read(status: int, body: Any = b"", headers: dict[str, str] | None = None) -> Refusal:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_refusal(status, headers or {}, content, str, now=NOW)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",  # OpenAI, vLLM
        "the request exceeds the available context size. try increasing the context size",  # llama.cpp
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",  # SGLang
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",  # Mistral
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000",  # Together
        "prompt is too long: 208310 tokens > 200000 maximum",  # Anthropic
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",  # Gemini
        "Input is too long for requested model.",  # Bedrock
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",  # Cohere
    ],
)
def test_prompts_that_are_too_long(message: str) -> None:
    """Each server has its own words for it."""
    assert read(400, {"error": {"message": message}}).type == "context_length"


@pytest.mark.parametrize(
    "message",
    [
        "Invalid 'max_tokens': integer below minimum value.",
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens",
        "Unrecognized request argument supplied: input_tokens",
    ],
)
def test_other_words_about_tokens(message: str) -> None:
    """A bad parameter is not a prompt that is too long."""
    assert read(400, {"error": {"message": message}}).type == "bad_request"


@pytest.mark.parametrize(
    ("status", "error", "type", "retryable"),
    [
        (302, {}, "redirected", False),
        (400, {"message": "bad"}, "bad_request", False),
        (400, {"code": "context_length_exceeded"}, "context_length", False),
        (400, {"message": "This model's maximum context length is 8192 tokens."}, "context_length", False),
        (400, {"message": "the request exceeds the available context size"}, "context_length", False),
        (401, {}, "authentication", False),
        (402, {"message": "Insufficient Balance"}, "quota_exhausted", False),
        (403, {}, "authentication", False),
        (404, {}, "not_found", False),
        (405, {}, "bad_request", False),
        (408, {}, "timeout", True),
        (409, {}, "conflict", True),
        (422, {}, "bad_request", False),
        (425, {}, "conflict", True),
        (429, {}, "rate_limited", True),
        (429, {"code": "insufficient_quota"}, "quota_exhausted", False),
        (429, {"type": "insufficient_quota", "code": None}, "quota_exhausted", False),
        (500, {}, "server_error", True),
        (503, {}, "server_error", True),
        (529, {"type": "overloaded_error"}, "server_error", True),
    ],
)
def test_types(status: int, error: dict[str, Any], type: str, retryable: bool) -> None:
    """Status and code decide the type, and the type whether to try again."""
    raised = read(status, {"error": error}).error("host:1")
    assert (raised.type, raised.retryable) == (type, retryable)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such model"}}, "no such model"),
        ({"error": "plain"}, "plain"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"object": "error", "message": "vllm says"}, "vllm says"),
        ({"detail": [{"loc": ["body"], "msg": "odd"}]}, "[{'loc': ['body'], 'msg': 'odd'}]"),
        (b"<html>\n  502   Bad\nGateway</html>", "<html> 502 Bad Gateway</html>"),
        (b'["list"]', '["list"]'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
    ],
)
def test_messages(body: Any, message: str) -> None:
    """The provider's message is found in every usual shape, on one line."""
    assert read(400, body).message == message


def test_long_messages_are_cut() -> None:
    """At most 300 characters are recorded, and the host and status stand before them."""
    text = str(read(500, b"x" * 5000).error("api.example.com"))
    assert text == "api.example.com answered 500: " + "x" * 300


def test_cleaning_comes_before_cutting() -> None:
    """A key at the edge of what is shown is not left half."""
    refusal = read_refusal(400, {}, b"x" * 295 + b"secret-key", lambda t: t.replace("secret-key", "[key]"), now=NOW)
    assert refusal.message.endswith("x[key]")


def test_refused_keys_say_where_they_came_from() -> None:
    """The hint is shown for authentication errors only."""
    assert str(read(401).error("h", " (from A)")) == "h answered 401 (from A)"
    assert str(read(500).error("h", " (from A)")) == "h answered 500"


@pytest.mark.parametrize(
    ("status", "error", "filtered"),
    [
        (400, {"code": "content_filter"}, True),
        (400, {"code": "content_policy_violation"}, True),
        (403, {"code": "content_filter"}, True),
        (400, {"code": "invalid_prompt", "message": "potentially violating our usage policy"}, True),
        (400, {"code": "invalid_prompt", "message": "bad roles"}, False),
        (500, {"code": "content_filter"}, False),
    ],
)
def test_filtered_prompts(status: int, error: dict[str, Any], filtered: bool) -> None:
    """A prompt stopped by a content filter is told from a bad request by its code."""
    assert read(status, {"error": error}).filtered is filtered


@pytest.mark.parametrize(
    ("error", "type"),
    [
        ({"code": 429, "message": "slow down"}, "rate_limited"),
        ({"code": "odd", "message": "?"}, "server_error"),
        ({"code": True}, "server_error"),
        ("text", "server_error"),
    ],
)
def test_errors_inside_a_good_status(error: Any, type: str) -> None:
    """A gateway's error in a reply with status 200 counts as the status in its code, else as 500."""
    assert read_error(error, str).type == type


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": " 0.25 "}, 0.25),
        ({"Retry-After": "5", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "5", "retry-after-ms": "soon"}, 5),
        ({"Retry-After": "Sun, 09 Sep 2001 01:47:00 GMT"}, 20),
        ({"Retry-After": "Sun, 09 Sep 2001 01:46:00 GMT"}, 0),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "tomorrow"}, None),
        ({"Retry-After": ""}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and HTTP dates are read; anything else names no time."""
    assert retry_after(headers, now=NOW) == seconds
    assert read(429, headers=headers).error("h").retry_after == seconds

"""Answers that were paid for once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trunchray.adapters.models.base import ModelReply, ModelRequest, RequestedCall, ToolDefinition
from trunchray.adapters.models.cache import REST, ReplyCache, request_key
from trunchray.adapters.store import Store
from trunchray.core.agent import Limits, Mock, ModelAgent, Price
from trunchray.core.digest import sha256
from trunchray.core.trial import Usage

SPEC = ModelAgent(name="m", model="local/m", base_url="http://127.0.0.1:1/v1", params={"temperature": 0.5})
REQUEST = ModelRequest(({"role": "user", "content": "2 + 2?"},), 100, "sum")
KEY = request_key(SPEC, REQUEST) or ""
TOOL = ToolDefinition("add", "Adds.", {"type": "object"})
REPLY = ModelReply(
    "vier ✓",
    "tool-calls",
    (RequestedCall("c", "add", '{"a": '),),
    Usage(input_tokens=5, output_tokens=2, reasoning_tokens=1),
    "m-1",
    "r-1",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> ReplyCache:
    return ReplyCache(Store(str(folder)))


async def test_an_answer_comes_back_as_it_was(cache: ReplyCache, folder: Path):
    """Text, tool calls, usage and identity; for any worker that names the same store."""
    assert await cache.find(KEY) is None
    await cache.keep(KEY, REPLY)
    assert await ReplyCache(Store(str(folder))).find(KEY) == REPLY
    assert cache.warnings == ()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((SPEC, replace(REQUEST, attempt=2)), id="attempt"),
        pytest.param((SPEC, replace(REQUEST, max_output_tokens=99)), id="output limit"),
        pytest.param((SPEC, replace(REQUEST, tools=(TOOL,))), id="tools"),
        pytest.param((SPEC, replace(REQUEST, response_format={"type": "json_object"})), id="form"),
        pytest.param((SPEC, replace(REQUEST, messages=({"role": "system", "content": "2 + 2?"},))), id="messages"),
        pytest.param((SPEC.model_copy(update={"model": "local/n"}), REQUEST), id="model"),
        pytest.param((SPEC.model_copy(update={"base_url": "http://127.0.0.1:2/v1"}), REQUEST), id="endpoint"),
        pytest.param((SPEC.model_copy(update={"params": {"temperature": 0}}), REQUEST), id="parameters"),
    ],
)
def test_another_question_has_another_key(other: tuple[ModelAgent, ModelRequest]):
    """Whatever may change the answer is part of the key."""
    assert request_key(*other) not in (None, KEY)


def test_the_same_question_has_the_same_key():
    """How a model is called, paced and paid for, which case asks and which retry it is do not change the answer."""
    spec = SPEC.model_copy(update={"name": "n", "price": Price(input=1, output=1), "limits": Limits(max_steps=3)})
    assert request_key(spec, replace(REQUEST, case_id="other", retry=2, step=7)) == KEY
    known = "8f1aabe8"  # keys outlive versions: an entry that is no longer found is paid for again
    assert KEY[:8] == known


def test_a_mock_looks_at_the_case():
    """Recorded outputs differ by case even where prompts do not."""
    spec = ModelAgent(name="m", model="mock/echo", mock=Mock())
    assert request_key(spec, REQUEST) != request_key(spec, replace(REQUEST, case_id="other"))


def test_what_has_no_canonical_form_has_no_key():
    """Such a request is simply not cached."""
    for number in (float("nan"), float("inf"), 2**60):
        assert request_key(SPEC, replace(REQUEST, messages=({"role": "user", "x": number},))) is None
    assert request_key(SPEC, replace(REQUEST, messages=({"role": "user", "content": "\ud800"},))) is None


@pytest.mark.parametrize("reason", ["content-filter", "error"])
async def test_what_is_no_whole_answer_is_not_kept(reason: Any, cache: ReplyCache):
    """What a filter stopped or a provider gave up is asked again."""
    await cache.keep(KEY, replace(REPLY, finish_reason=reason))
    assert await cache.find(KEY) is None


async def test_an_answer_that_no_file_can_hold_is_not_kept(cache: ReplyCache):
    """Half a character is an answer like any other, but is not stored."""
    await cache.keep(KEY, replace(REPLY, text="\ud800"))
    assert await cache.find(KEY) is None
    assert cache.warnings == ()


def entry(folder: Path) -> Path:
    (found,) = [path for path in folder.rglob("*") if path.is_file()]
    return found


def forged(body: bytes) -> bytes:
    return f"trunchray.reply/1 {KEY} {sha256(body)}\n".encode() + body


def changed(**fields: Any) -> bytes:
    reply = {"text": "4", "finish_reason": "stop", "tool_calls": [], "usage": {}, "model": None, "request_id": None}
    return forged(json.dumps(reply | fields).encode())


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff" * 100, id="no text"),
        pytest.param(forged(b""), id="no reply"),
        pytest.param(forged(b"[" * 100_000), id="deep"),
        pytest.param(forged(b'"4"'), id="a string"),
        pytest.param(forged(b'{"text": "4"} x'), id="more than JSON"),
        pytest.param(changed(text=4), id="a number for text"),
        pytest.param(changed(text="\ud800"), id="half a character"),
        pytest.param(changed(finish_reason="content-filter"), id="filtered"),
        pytest.param(changed(finish_reason="because"), id="unknown reason"),
        pytest.param(changed(usage={"inputTokens": -1}), id="negative tokens"),
        pytest.param(changed(usage={"outputTokens": 10**30}), id="more tokens than a number holds"),
        pytest.param(changed(usage={"tokens": 1}), id="unknown count"),
        pytest.param(changed(tool_calls=[{"id": "c", "name": "f", "arguments": {}}]), id="arguments that are no text"),
    ],
)
async def test_foreign_content_is_no_answer(content: bytes, cache: ReplyCache, folder: Path):
    """An entry that somebody else wrote is believed only if it is one; the next answer takes its place."""
    await cache.keep(KEY, REPLY)
    entry(folder).write_bytes(content)
    assert await cache.find(KEY) is None
    assert cache.warnings == ()
    await cache.keep(KEY, REPLY)
    assert await cache.find(KEY) == REPLY


async def test_a_changed_bit_is_noticed(cache: ReplyCache, folder: Path):
    """A damaged entry is no answer, wherever the damage is; nor is another request's entry under this key."""
    await cache.keep(KEY, REPLY)
    whole = entry(folder).read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        entry(folder).write_bytes(bytes(damaged))
        assert await cache.find(KEY) is None, place
    entry(folder).write_bytes(whole.replace(KEY.encode(), sha256(b"other").encode()))
    assert await cache.find(KEY) is None


async def test_many_writers(cache: ReplyCache, folder: Path):
    """Whoever writes last is found, and never a mixture."""
    replies = [replace(REPLY, text=str(number) * 1000) for number in range(20)]
    await asyncio.gather(*(cache.keep(KEY, reply) for reply in replies), *(cache.find(KEY) for _ in range(20)))
    assert await cache.find(KEY) in replies
    assert entry(folder)


async def test_a_store_that_fails_is_an_empty_cache(tmp_path: Path):
    """No call fails because of it; it is said once, and after a minute the store gets another chance."""
    place, now = tmp_path / "file", [0.0]
    place.write_bytes(b"in the way")
    cache = ReplyCache(Store(str(place)), clock=lambda: now[0])
    await cache.keep(KEY, REPLY)
    place.unlink()
    await cache.keep(KEY, REPLY)
    assert await cache.find(KEY) is None
    assert cache.warnings == (f"the cache {place} cannot be used (Not a directory); models are asked instead",)
    now[0] = REST
    await cache.keep(KEY, REPLY)
    assert await cache.find(KEY) == REPLY
    assert len(cache.warnings) == 1

"""The OpenAI chat format, and JSON as other people write it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunchray.adapters.models import json_text
from trunchray.adapters.models.base import ModelRequest, RequestedCall, ToolDefinition
from trunchray.adapters.models.wire import MalformedReply, RequestWriter, failure, finish_reason, read_reply
from trunchray.core.trial import Usage


def written(params: dict[str, Any], *, limit_field: str = "max_tokens", **request: Any) -> dict[str, Any]:
    messages = ({"role": "user", "content": "hi"},)
    return json.loads(RequestWriter("gpt", params, limit_field).write(ModelRequest(messages, 64, "secret", **request)))


def reply(message: Any, **more: Any) -> Any:
    return read_reply({"choices": [{"message": message, "finish_reason": "stop", **more}]}, None, str)


def test_requests_say_what_was_asked_and_no_more() -> None:
    """Model, params, messages and limit; nothing about the trial."""
    assert written({"temperature": 0, "stop": ["a"]}, attempt=2, step=3, retry=4) == {
        "model": "gpt",
        "temperature": 0,
        "stop": ["a"],
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 64,
    }


def test_the_form_of_a_reply_is_asked_for() -> None:
    """Where a request has one it is sent beside everything else."""
    form = {"type": "json_object"}
    assert written({"temperature": 0}, response_format=form)["response_format"] == form


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_params_override_the_limit(name: str) -> None:
    """A limit among the params is the only one that is sent, under the name it has there."""
    sent = written({name: 5}, limit_field="max_completion_tokens")
    assert {key: value for key, value in sent.items() if key.startswith("max")} == {name: 5}


def test_extra_bodies_are_unpacked() -> None:
    """What a configuration for another library holds in extra_body stands among the fields, a limit too."""
    body = written({"temperature": 0, "extra_body": {"top_k": 5, "max_tokens": 9}})
    assert (body["temperature"], body["top_k"], body["max_tokens"]) == (0, 5, 9)
    assert "extra_body" not in body


def test_tools_are_function_definitions() -> None:
    """Each tool is sent with its description and schema."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "number"}}}
    sent = written({}, tools=(ToolDefinition("add", "Adds.", schema),))
    function = {"name": "add", "description": "Adds.", "parameters": schema}
    assert sent["tools"] == [{"type": "function", "function": function}]


def test_lone_surrogates_in_a_request_do_not_crash() -> None:
    """Half an emoji in a prompt is sent as U+FFFD."""
    request = ModelRequest(({"role": "user", "content": "é\ud83d"},), 64, "c")
    assert json.loads(RequestWriter("gpt", {}, "max_tokens").write(request))["messages"][0]["content"] == "é\ufffd"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}, 7], "ab"),
        ([{"type": "thinking", "text": "hm"}, {"text": "b"}], "b"),
        (5, ""),
    ],
)
def test_text(content: Any, text: str) -> None:
    """A string, the text parts of a list, or nothing."""
    assert reply({"content": content}).text == text


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("tool_calls", "tool-calls"),
        ("function_call", "tool-calls"),
        ("error", "error"),
        ("eos_token", "other"),
        (None, "other"),
        (["stop"], "other"),
    ],
)
def test_finish_reasons(raw: Any, ours: str) -> None:
    """Known words are translated, everything else is other."""
    assert finish_reason(raw) == ours


def test_tool_calls_keep_raw_arguments() -> None:
    """Broken JSON stays as it is; values and missing parts are made up for."""
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "a", "arguments": '{"x": '}},
        {"function": {"name": "b", "arguments": {"x": 1}}},
        {"id": "", "function": {"arguments": None}},
    ]
    assert reply({"content": None, "tool_calls": calls}).tool_calls == (
        RequestedCall("c1", "a", '{"x": '),
        RequestedCall("call_2", "b", '{"x":1}'),
        RequestedCall("call_3", "", "{}"),
    )
    assert reply({"function_call": {"name": "a", "arguments": "{}"}}).tool_calls == (
        RequestedCall("call_1", "a", "{}"),
    )
    assert reply({"content": "x", "tool_calls": None}).tool_calls == ()


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (None, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 5}, Usage(input_tokens=0, output_tokens=5)),
        ({"prompt_tokens": None, "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": "5"}, Usage()),
        ({"prompt_tokens": 10**25, "completion_tokens": 5.0}, Usage()),
        ({"prompt_tokens": 2**53, "completion_tokens": 2**53 + 1}, Usage(input_tokens=2**53)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(input_tokens=9, cached_input_tokens=4)),
        (
            {
                "prompt_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(input_tokens=9, cached_input_tokens=8, reasoning_tokens=7),
        ),
        ([], Usage()),
        # xAI counts thoughts apart from the output, as its total says; everybody else as part of it.
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 17}
            | {"completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(input_tokens=10, output_tokens=7, reasoning_tokens=5),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}
            | {"completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(input_tokens=10, output_tokens=7, reasoning_tokens=5),
        ),
    ],
)
def test_usage(raw: Any, usage: Usage) -> None:
    """What the provider does not say, or what cannot be a number of tokens, is None, never 0."""
    assert read_reply({"choices": [{"message": {"content": ""}}], "usage": raw}, None, str).usage == usage


def test_ids_of_calls_differ() -> None:
    """A model that uses an id twice must not make the provider refuse what it said itself."""
    calls = [{"id": "c", "function": {"name": "f", "arguments": str(number)}} for number in range(3)]
    assert [call.id for call in reply({"tool_calls": calls}).tool_calls] == ["c", "c_2", "c_3"]


def test_identity() -> None:
    """The request id of the headers goes before the body's, and odd ones are left out."""
    body: dict[str, Any] = {"choices": [{"message": {"content": ""}}], "id": "body", "model": "gpt-x"}
    assert read_reply(body, "header", str).request_id == "header"
    assert (read_reply(body, None, str).request_id, read_reply(body, None, str).model) == ("body", "gpt-x")
    odd = read_reply({**body, "id": 5, "model": None}, None, str)
    assert (odd.request_id, odd.model) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": None}, "finish_reason": None}]},
        {"choices": [{"message": {"content": None, "tool_calls": []}}]},
        {"choices": [{"message": {"tool_calls": "x"}}]},
        {"choices": [{"message": {"tool_calls": [None]}}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c"}]}}]},
    ],
)
def test_what_is_not_a_completion_is_malformed(body: dict[str, Any]) -> None:
    """A body without a message is told from an empty answer."""
    with pytest.raises(MalformedReply):
        read_reply(body, None, str)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"choices": [{"message": {"content": "x"}, "finish_reason": "error"}]}, "given up (finish_reason 'error')"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "abort"}]}, "given up (finish_reason 'abort')"),
        ({"choices": [{"message": {}, "finish_reason": "error", "error": {"code": 502}}]}, "{'code': 502}"),
        ({"choices": [{"message": {"content": "x"}, "error": "gone"}]}, "gone"),
        ({"error": "gone", "choices": [{"message": {"content": "par"}, "finish_reason": None}]}, "gone"),
        ({"error": "gone"}, "gone"),
    ],
)
def test_failures_in_a_good_status_are_found(body: dict[str, Any], error: str) -> None:
    """An error beside the choices or in the first, or a reason to finish that is one, is no answer."""
    assert error in str(failure(body))


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls", None, 5])
def test_answers_are_no_failures(reason: Any) -> None:
    """Nothing said, a limit or a filter are how the model behaves, whatever empty fields stand beside."""
    assert (
        failure({"error": None, "choices": [{"message": {"content": ""}, "finish_reason": reason, "error": {}}]})
        is None
    )
    assert failure({}) is None


def test_a_filtered_answer_is_no_failure() -> None:
    """Not even where the gateway explains the filter as an error."""
    assert failure({"choices": [{"message": {}, "finish_reason": "content_filter", "error": {"code": 400}}]}) is None


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ('{"a": "\\u0053ECRET"}', '{"a":"[key]"}'),
        ('{"\\u0053ECRET": [{"b": "x\\u0053ECRET", "c": 1}]}', '{"[key]":[{"b":"x[key]","c":1}]}'),
        ('"\\u0053ECRET"', '"[key]"'),
        ('{"a":   "\\u0053ECRE"}', '{"a":   "\\u0053ECRE"}'),
        ('{"a": "\\u0053ECRET', '{"a": "\\u0053ECRET'),
        ('{"a": SECRET', '{"a": [key]'),
    ],
)
def test_arguments_are_cleaned_behind_their_escapes(raw: str, cleaned: str) -> None:
    """What the arguments say once they are read is clean; where nothing is to be cleaned they stay as written."""
    body = {"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": raw}}]}}]}
    found = read_reply(body, None, lambda text: text.replace("SECRET", "[key]")).tool_calls[0].arguments
    assert found == cleaned


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"a\\ud83d": ["\\ude00"]}', {"a\ufffd": ["\ufffd"]}),
        (b'["\xf0\x9f\x98"]', ["\ufffd"]),
        (b"\xef\xbb\xbf[1]", [1]),
        ("[1.0, 2]", [1.0, 2]),
    ],
)
def test_parsing_is_lenient_about_text(content: bytes | str, value: Any) -> None:
    """Broken Unicode is repaired wherever it is."""
    assert json_text.parse(content) == value


@pytest.mark.parametrize(
    "content", ["", "{", "[1] x", "NaN", "[-Infinity]", "[" * 100_000, "1" * 5000, '["\\ud83d", NaN]']
)
def test_parsing_is_strict_about_values(content: str) -> None:
    """What no JSON can hold is refused with one kind of error."""
    with pytest.raises(ValueError, match=r"."):
        json_text.parse(content)


def test_dumping_refuses_what_is_not_json() -> None:
    """An object in the place of a value is an error on the lenient path too."""
    with pytest.raises(ValueError, match="object is not a JSON value"):
        json_text.dump(["\ud83d", object()])

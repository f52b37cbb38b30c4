"""Schemas of outputs: types by pydantic, JSON Schema, and functions."""

from __future__ import annotations

import enum
import inspect
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from support.checked import a_run, said, verdict
from support.ids import shown
from trunchray.errors import UsageError
from trunchray.evaluators.python.schema import fits_schema
from trunchray.evaluators.python.scorer import CodeScorer, as_scorers


class Reply(BaseModel):
    text: str
    score: int = Field(default=0, ge=0)
    day: date | None = None


class Loose(TypedDict):
    name: str


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int


OBJECT = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}


@pytest.mark.parametrize(
    ("schema", "output", "fits"),
    [
        (Reply, {"text": "hi"}, True),
        (Reply, {"text": "hi", "score": 3, "day": "2026-01-02"}, True),
        (Reply, {"text": "hi", "day": date(2026, 1, 2)}, True),
        (Reply, Reply(text="hi"), True),
        (Reply, {"text": 3}, False),
        (Reply, {"text": "hi", "score": "3"}, False),
        (Reply, {"text": "hi", "score": -1}, False),
        (Reply, {"text": "hi", "score": True}, False),
        (Reply, {}, False),
        (Reply, "hi", False),
        (Reply, '{"text": "hi"}', False),
        (Reply, None, False),
        (Reply, object(), False),
        (Point, {"x": 1}, True),
        (Point, Point(1), True),
        (Point, {"x": "1"}, False),
        (Loose, {"name": "n"}, True),
        (Loose, {}, False),
        (Colour, "red", True),
        (Colour, "blue", False),
        (int, 1, True),
        (int, True, False),
        (int, "1", False),
        (float, 1, True),
        (str, "", True),
        (list[int], [1, 2], True),
        (list[int], [1, "2"], False),
        (dict[str, int], {"a": 1}, True),
        (tuple[int, str], [1, "a"], True),
        (list[Reply], [Reply(text="hi"), {"text": "ho"}], True),
        (TypeAdapter(int | None), None, True),
        (TypeAdapter(int | None), "x", False),
        (Annotated[int, Field(gt=2)], 3, True),
        (Annotated[int, Field(gt=2)], 2, False),
        (OBJECT, {"n": 1}, True),
        (OBJECT, {"n": 1.0}, True),
        (OBJECT, {"n": 0}, False),
        (OBJECT, {"n": True}, False),
        (OBJECT, {"n": "1"}, False),
        (OBJECT, {}, False),
        (OBJECT, [], False),
        (OBJECT, object(), False),
        ({}, {"any": "thing"}, True),
        ({"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}, [1, 2.5], True),
        ({"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}, [1, "a"], False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, ["a", 1], True),
    ],
    ids=shown,
)
def test_an_output_fits_a_type_or_a_json_schema_strictly(schema: Any, output: Any, fits: bool) -> None:
    """No text for a number and no bool for one; a date is its text, as in JSON."""
    assert verdict(fits_schema(schema), a_run(output)) == (fits, float(fits))


@pytest.mark.parametrize(
    ("returned", "fits"),
    [
        (None, True),
        (True, True),
        (np.True_, True),
        ([], True),
        ((), True),
        ({"value": 3}, True),
        ({"issues": None}, True),
        ({"issues": []}, True),
        (False, False),
        (np.False_, False),
        ("", False),
        ("too short", False),
        (["too short"], False),
        ([{"path": ["a"], "message": "no"}], False),
        ({"issues": ["too short"]}, False),
        ({"a": 1}, False),
        (1, False),
        (object(), False),
    ],
    ids=shown,
)
async def test_a_function_is_a_schema_and_may_be_async(returned: Any, fits: bool) -> None:
    """It fits where there are no issues; what is neither an answer nor issues fails closed."""
    assert verdict(fits_schema(lambda _: returned), a_run("out")) == (fits, float(fits))

    async def later(_: Any) -> Any:
        return returned

    found = said(fits_schema(later), a_run("out"))
    assert inspect.isawaitable(found)
    assert (await found) == said(fits_schema(lambda _: returned), a_run("out"))


def test_a_function_is_given_the_output_as_it_is() -> None:
    """Not its JSON."""
    point = Point(1)
    assert said(fits_schema(lambda output: output is point), a_run(point)).passed


@pytest.mark.parametrize(
    ("schema", "output", "explanation"),
    [
        (Reply, {"score": "x"}, "text: Field required; score: Input should be a valid integer"),
        (int, "x", "output: Input should be a valid integer"),
        (
            list[int],
            ["a", "b", "c", "d", "e"],
            "; ".join(f"{place}: Input should be a valid integer" for place in range(3)) + " and 2 more",
        ),
        (OBJECT, {"n": 0}, "$.n: 0 is less than the minimum of 1"),
        (OBJECT, {}, "$: 'n' is a required property"),
        (
            OBJECT,
            object(),
            "output has no JSON form: object is not a JSON value: Unable to serialize unknown type: <class 'object'>",
        ),
        (lambda _: ["too short", "too dull"], "", "too short; too dull"),
        (lambda _: False, "", "the schema does not fit"),
        (lambda _: 3, "", "the schema returned 3; it returns None, True, False or issues"),
    ],
)
def test_the_first_issues_are_the_explanation(schema: Any, output: Any, explanation: str) -> None:
    """Three of them, each with its place."""
    assert said(fits_schema(schema), a_run(output)).explanation == explanation


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (None, "fits_schema() takes a pydantic model, a type"),
        ("string", "fits_schema() takes a pydantic model, a type"),
        ({"type": "nothing"}, "not a JSON Schema: $.type: 'nothing' is not valid"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": 3},
            "not a JSON Schema: $.type: 3 is not valid",
        ),
        (type("Opaque", (), {}), "not a type that pydantic knows: "),
        (list[type("Opaque", (), {})], "not a type that pydantic knows: "),
    ],
    ids=shown,
)
def test_what_is_no_schema_is_refused_by_the_scorers_name(schema: Any, problem: str) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError) as e:
        as_scorers({"shape": fits_schema(schema)})
    assert str(e.value).startswith(f"scorer 'shape': {problem}")


def test_a_reference_to_elsewhere_is_not_followed() -> None:
    """Nothing is fetched: the check fails with the reference in its error."""
    with pytest.raises(Exception, match=r"Unresolvable: https://example\.com/schema"):
        said(fits_schema({"$ref": "https://example.com/schema"}), a_run({}))


def digest_of(schema: object) -> str:
    scorer = as_scorers({"shape": fits_schema(schema)})["shape"]
    assert isinstance(scorer, CodeScorer)
    return scorer.digest


def test_schemas_are_told_apart_by_their_shape() -> None:
    """Types by their source and by what they accept, JSON Schemas by their content."""
    different = [Reply, Loose, Point, int, list[int], list[str], TypeAdapter(int), OBJECT, {}, Colour, len]
    assert len({digest_of(schema) for schema in different}) == len(different)
    assert digest_of(dict(OBJECT)) == digest_of(OBJECT)
    assert digest_of(TypeAdapter(list[int])) == digest_of(TypeAdapter(list[int]))

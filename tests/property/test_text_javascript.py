"""Python's string rules against the JavaScript engine itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import deno
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunchray.core.checks import AnswerBank, Contains, Exact, NonEmpty
from trunchray.core.javascript import WHITE_SPACE, normalise, trim
from trunchray.evaluators.text import grade_text

HOST = r"""
const normalise = (t) => t.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim();
const rules = {
  trim: (t) => t.trim(),
  lower: (t) => t.toLowerCase(),
  normalise,
  nonEmpty: (output) => output.trim() !== "",
  exact: (output, expected) => output.trim() === expected.trim(),
  contains: (output, expected) => output.toLowerCase().includes(expected.trim().toLowerCase()),
  bank: (output, answers, forbidden) => {
    const text = normalise(output);
    return !forbidden.some((f) => text.includes(normalise(f))) && answers.some((a) => text.includes(normalise(a)));
  },
};
let rest = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const [rule, ...given] = JSON.parse(line);
    console.log(JSON.stringify(rules[rule](...given)));
  }
}
"""

JavaScript = Callable[..., Any]

EXOTIC = (
    WHITE_SPACE
    + "\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2060"
    + "ΣσςİıIiKÅßẞǅﬀﬁſẛ̣①½ﷺ㍍ＡΌ"
    + "\u0301\u0307\u0323\u0345\u05b0"
    + "😀𝒜𐐀"
)
# Characters of the Unicode version that Python knows: the engine may know younger ones.
characters = st.one_of(
    st.sampled_from(EXOTIC), st.characters(exclude_categories=("Cn", "Cs")), st.sampled_from("aA b.'")
)
texts = st.text(characters, max_size=30)
texts_with_lone_surrogates = st.text(st.one_of(characters, st.characters(categories=("Cs",))), max_size=30)
visible = texts.filter(normalise)


@pytest.fixture(scope="module")
def javascript() -> Iterator[JavaScript]:
    """Calls one rule in one long-lived engine."""
    command = [deno.find_deno_bin(), "eval", "--no-config", HOST]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as engine:

        def call(rule: str, *given: Any) -> Any:
            assert engine.stdin is not None
            assert engine.stdout is not None
            engine.stdin.write(json.dumps([rule, *given]) + "\n")
            engine.stdin.flush()
            return json.loads(engine.stdout.readline())

        yield call
        engine.kill()


@given(text=texts_with_lone_surrogates)
@settings(max_examples=250)
def test_trim(javascript: JavaScript, text: str) -> None:
    """`trim` removes what String.prototype.trim removes, even around broken surrogates."""
    assert trim(text) == javascript("trim", text)


@given(text=texts_with_lone_surrogates)
@settings(max_examples=250)
def test_lower_case(javascript: JavaScript, text: str) -> None:
    """`str.lower` is String.prototype.toLowerCase, final sigma and dotted capital I included."""
    assert text.lower() == javascript("lower", text)


@given(text=texts_with_lone_surrogates)
@settings(max_examples=250)
def test_normalise(javascript: JavaScript, text: str) -> None:
    """`normalise` is NFKC, lower case, runs of white space to one blank and trim, as JavaScript does them."""
    assert normalise(text) == javascript("normalise", text)


@given(output=texts)
@settings(max_examples=200)
def test_non_empty(javascript: JavaScript, output: str) -> None:
    """`non_empty` passes when JavaScript would find text."""
    assert grade_text(NonEmpty(), output).passed == javascript("nonEmpty", output)


@given(expected=texts.filter(trim), before=texts, after=texts, data=st.data())
@settings(max_examples=250)
def test_exact_and_contains(
    javascript: JavaScript, expected: str, before: str, after: str, data: st.DataObject
) -> None:
    """`exact` and `contains` decide as JavaScript would, near misses included."""
    middle = data.draw(st.sampled_from([expected, expected.upper(), expected.lower(), trim(expected), expected[:-1]]))
    output = before + middle + after
    assert grade_text(Exact(expected=expected), output).passed == javascript("exact", output, expected)
    assert grade_text(Contains(expected=expected), output).passed == javascript("contains", output, expected)


@given(
    answers=st.lists(visible, min_size=1, max_size=3), forbidden=st.lists(visible, max_size=2), pieces=st.lists(texts)
)
@settings(max_examples=250)
def test_answer_bank(javascript: JavaScript, answers: list[str], forbidden: list[str], pieces: list[str]) -> None:
    """`answer_bank` decides as JavaScript would."""
    check = AnswerBank(answers=tuple(answers), forbidden_answers=tuple(forbidden))
    for output in ("".join(pieces), *("".join([*pieces, text.swapcase()]) for text in answers + forbidden)):
        assert grade_text(check, output).passed == javascript("bank", output, answers, forbidden)

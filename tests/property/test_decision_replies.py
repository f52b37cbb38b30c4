"""No reply of a judge, whatever it holds, is taken for a decision that it is not, or gets in the way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunchray.adapters.models.base import ModelReply
from trunchray.core.decision_reply import read_decisions, read_reply
from trunchray.core.decisions import NO, YES, Fallback, Question
from trunchray.core.share import TOLERANCE
from trunchray.evaluators.judges.labelled import read_labelled

QUESTIONS = (
    Question("q", "boolean", "?", {YES: None, NO: None}),
    Question("c", "choice", "?", {"a": None, "b": None}),
    Question("s", "score", "?", {"low": None, "high": None}),
)
KEYS = ("id", "type", "noul", "choice", "score", "legend", "probabilities", "confidence", "answer", "reason")
OUTER = ("decisions", "reply", "fallback", *"qcs0123AB", "a", "b", YES, NO)
WORDS = st.sampled_from([*KEYS, *OUTER])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=25
)
SHARES = st.floats(0, 1)


@st.composite
def distributions(draw: st.DrawFn, names: tuple[str, str]) -> dict[str, float]:
    """Two probabilities that add up to about 1, not always near enough."""
    first = draw(SHARES)
    return {names[0]: first, names[1]: min(1.0, max(0.0, 1 - first + draw(st.floats(-0.05, 0.05))))}


@st.composite
def replies(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Decisions about all questions, in the right form."""
    chosen, graded = draw(distributions(("a", "b"))), draw(distributions(("0", "1")))
    return [
        {"id": "q", "type": "noul", "noul": draw(SHARES)},
        {"id": "c", "type": "choice", "choice": "a", "probabilities": chosen, "confidence": draw(SHARES)},
        {
            "id": "s",
            "type": "score",
            "score": draw(SHARES),
            "legend": {"0": "", "1": ""},
            "probabilities": graded,
            "confidence": draw(SHARES),
        },
    ]


@given(ANYTHING)
def test_any_reply_is_read(reply: Any) -> None:
    """Nothing raises, and what is no set of decisions is a parse-error, or the fallback that it says it is."""
    for found in (read_decisions(QUESTIONS, reply), read_reply(QUESTIONS, reply)):
        assert isinstance(found, Fallback) or [decision.id for decision in found] == ["q", "c", "s"]


@given(ANYTHING | st.fixed_dictionaries({"1": ANYTHING, "2": ANYTHING, "3": ANYTHING}))
def test_any_answer_of_a_model_is_read(said: Any) -> None:
    """Nor does what a language model writes."""
    found = read_labelled(QUESTIONS, ModelReply(json.dumps(said)))
    assert isinstance(found, Fallback) or [decision.id for decision in found] == ["q", "c", "s"]


@given(replies(), st.permutations([0, 1, 2]))
def test_distributions_are_kept_or_refused(reply: list[dict[str, Any]], order: list[int]) -> None:
    """Those within 0.02 of 1 come back as they were sent, in the order of the questions; any other refuses them all."""
    found = read_decisions(QUESTIONS, [reply[place] for place in order])
    sums = [sum(each["probabilities"].values()) for each in reply[1:]]
    if isinstance(found, Fallback):
        assert any(abs(total - 1) > TOLERANCE for total in sums)
        return
    assert all(abs(total - 1) <= TOLERANCE + 1e-6 for total in sums)
    assert found[0].probabilities[YES] == reply[0]["noul"]
    assert found[1].probabilities == reply[1]["probabilities"]
    assert list(found[2].probabilities.values()) == list(reply[2]["probabilities"].values())


@given(replies(), st.data())
def test_one_violation_refuses_everything(reply: list[dict[str, Any]], data: st.DataObject) -> None:
    """Whichever field of whichever decision is taken away, nothing of the reply is used."""
    broken = data.draw(st.sampled_from(reply))
    del broken[data.draw(st.sampled_from(sorted(broken)))]
    found = read_decisions(QUESTIONS, reply)
    assert isinstance(found, Fallback)
    assert found.reason == "parse-error"

"""Answering from a small collection of texts: the form of the answers, their content, and whether they are made up.

The task picks the sentence that shares the rarest words with the question. A prebuilt judge decides whether an answer
is supported by its source. Its one step is a rule here, so that this runs offline; to ask a model, name one instead of
"rule", and give `model_steps()` instead of `judge_step`.

    python examples/retrieval.py
    trunchray eval run examples/retrieval.py
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from trunchray import RunRecord, evaluate, faithfulness, fits_schema, includes, matches

FOLDER = Path(__file__).with_name("texts")
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))}
UNKNOWN = "I do not know."


class Answer(BaseModel):
    """What the task returns. `source` is the name of a text."""

    answer: str
    source: str | None


def words(text: str) -> set[str]:
    """The words of a text, by their first letters: enough to find "returned" by "return"."""
    return {word[:4] for word in re.findall(r"\w+", text.lower()) if len(word) > 3 or word.isdigit()}


SENTENCES = [(name, each) for name, text in TEXTS.items() for each in re.split(r"(?<=[.])\s+", text.strip())]
COMMON = Counter(word for _, sentence in SENTENCES for word in words(sentence))


def answer(question: str) -> Answer:
    """The sentence that fits the question best."""
    asked = words(question)

    def shared(entry: tuple[str, str]) -> float:
        return sum(1 / COMMON[word] for word in sorted(asked & words(entry[1])))

    source, sentence = max(SENTENCES, key=shared)
    if shared((source, sentence)) < 0.5:
        return Answer(answer=UNKNOWN, source=None)
    return Answer(answer=sentence, source=source)


def answers(run: RunRecord) -> Any:
    """Call a helper with part of the output: the text of the answer."""
    expected: Any = run.expected_output
    return includes()(replace(run, output=run.output.answer, expected_output=expected["answer"]))


def judge_step(step: dict[str, Any], payload: dict[str, Any]) -> str:
    """Instead of the model that the step is pinned to: are all words of the output in its context?"""
    made_up = words(payload["output"]) - words(payload["input"]["context"])
    if made_up:
        return json.dumps({"category": "unfaithful", "reason": f"not in the source: {sorted(made_up)}"})
    return json.dumps({"category": "faithful", "reason": "all of it is in the source"})


FAITHFUL = faithfulness(provider="none", model="rule").scorer(judge_step)


async def supported(run: RunRecord) -> Any:
    """The prebuilt judge compares the output with its context, which is the text that the answer is from."""
    if run.output.source is None:
        return True
    context = {"question": run.input, "context": TEXTS[run.output.source]}
    return await FAITHFUL(replace(run, input=context, output=run.output.answer))


evaluation: dict[str, Any] = {
    "name": "shop-answers",
    "task": answer,
    "data": Path(__file__).with_name("retrieval.jsonl"),
    "scorers": {
        "shape": fits_schema(Answer),
        "source": matches("source"),
        "answers": answers,
        "supported": supported,
    },
    "allow": {"source": 1, "answers": 1},
    "about": {"texts": len(TEXTS)},
}

if __name__ == "__main__":
    print(evaluate(**evaluation).markdown())

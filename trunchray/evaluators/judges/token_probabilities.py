"""The probabilities that a language model gave to each label, from those of its tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from trunchray.adapters.models.base import ModelReply, ReplyToken

ENOUGH = 0.5
"""The least share of the probability that must be on labels, to which it is then normalised. The rest is on tokens that
providers do not list or that begin no label; where the form of an answer is forced on a model, that may be much."""

_ANSWER = re.compile(r'"answer"\s*:\s*"')


def token_probabilities(reply: ModelReply, labels: Sequence[Sequence[str]]) -> list[dict[str, float]] | None:
    """For each question the probability of every one of its labels, adding up to 1.

    The token that counts is the one in which the label after `"answer": "` begins; labels that none of the likeliest
    tokens in its place begin get 0. None when the tokens do not make up the text, or less than `ENOUGH` is on labels.
    """
    written = "".join(token.text for token in reply.tokens)
    begins = written.find(reply.text) if reply.text else -1
    places = [match.end() for match in _ANSWER.finditer(reply.text)]
    if begins < 0 or len(places) != len(labels):
        return None
    at = dict(_tokens_at(reply.tokens, {begins + place for place in places}))
    found: list[dict[str, float]] = []
    for place, names in zip(places, labels, strict=True):
        token, start = at[begins + place]
        shares = _of_labels(token, written[start : begins + place], names)
        if shares is None:
            return None
        found.append(shares)
    return found


def _tokens_at(tokens: Sequence[ReplyToken], places: set[int]) -> Iterator[tuple[int, tuple[ReplyToken, int]]]:
    """For each place in the text the token that holds it, and where that begins."""
    start = 0
    for token in tokens:
        end = start + len(token.text)
        yield from ((place, (token, start)) for place in range(start, end) if place in places)
        start = end


def _of_labels(token: ReplyToken, before: str, names: Sequence[str]) -> dict[str, float] | None:
    """`before` is what the token holds of the text before the label."""
    shares = dict.fromkeys(names, 0.0)
    for text, logprob in token.likeliest:
        if text.startswith(before) and (name := _begun(text[len(before) :], names)):
            shares[name] += math.exp(min(logprob, 0.0))
    total = math.fsum(shares.values())
    return {name: share / total for name, share in shares.items()} if total >= ENOUGH else None


def _begun(text: str, names: Sequence[str]) -> str | None:
    """The one label that a token is or begins, ignoring case; None when there is none, or there are several."""
    said, quote, _ = text.casefold().partition('"')
    if quote:
        return next((name for name in names if name.casefold() == said), None)
    found = [name for name in names if name.casefold().startswith(said)] if said else []
    return found[0] if len(found) == 1 else None

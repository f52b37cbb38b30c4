"""Markup made of text."""

from __future__ import annotations

from trunchray.pages.html import markup, prose


def test_backticks_enclose_code():
    """What is between them is escaped like all text."""
    said = prose("a < b; `price` or `<b>` gives it")
    assert said == "a &lt; b; <code>price</code> or <code>&lt;b&gt;</code> gives it"
    assert markup(said) == said


def test_a_sentence_without_code_stays_as_it_is():
    """Escaped once."""
    assert prose("5 > 4 & no code") == "5 &gt; 4 &amp; no code"

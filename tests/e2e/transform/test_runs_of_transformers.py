"""What a transformer may do in its two runs, and how its failures are told."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from trunchray.adapters.sandbox.transformer import SourceText, TransformFlaw, transform

SOURCES = [SourceText("rows", "data/rows.txt", b"x", hashlib.sha256(b"x").hexdigest())]


def run(body: str, *, deadline: float = 20) -> list[TransformFlaw]:
    code = f'export default {{ name: "T", async transform({{ sources }}) {{ {body} }} }};'
    return list(asyncio.run(transform(code.encode(), SOURCES, deadline=deadline)).flaws)


FAILURES = {
    "loops": ("for (;;);", "did not end within 2 s"),
    "loops later": ("await new Promise((resolve) => setTimeout(resolve, 10)); for (;;);", "did not end within 2 s"),
    "never settles": ("await new Promise(() => {});", "waits for something that will never happen"),
    "nothing": ("", "must return an array of cases, but returned undefined"),
    "text": ('return "[]";', "must return an array of cases, but returned a string"),
    "throws later": (
        "setTimeout(() => { throw new Error('late'); }); await new Promise(() => {});",
        "threw Error: late",
    ),
    "hostile proxy": ("return new Proxy([1], { getOwnPropertyDescriptor() { throw new Error('no'); } });", None),
    "many": ("return new Array(25_001).fill({});", "returned 25,001 cases; a release holds at most 25,000"),
    "array buffers": (
        "const all = []; for (;;) all.push(new Uint8Array(1e8).fill(1));",
        "needs more than 1024 MB of memory: RangeError: Array buffer allocation failed",
    ),
    "network": ('await fetch("https://example.org/");', "threw TypeError: there is no network in the sandbox"),
    "run-time import": ('await import("node:fs");', "threw TypeError: A dynamic import callback was not specified."),
}


@pytest.mark.parametrize(("body", "message"), FAILURES.values(), ids=FAILURES)
def test_failures_are_told(body: str, message: str | None):
    """Whatever `transform` does wrong is one flaw of it, in words."""
    (flaw,) = run(body, deadline=2 if message and "within 2 s" in message else 60)
    assert (flaw.index, flaw.path) == (None, "transform")
    if message is not None:
        assert flaw.message == message


UNSTABLE = {
    "now": "Date.now()",
    "constructor of a date": "new (new Date(0).constructor)().getFullYear()",
    "subclass of Date": "new (class extends Date {})().getFullYear()",
    "uptime": "Math.round(performance.now() / 1e6)",
    "time origin": "performance.timeOrigin",
    "parts": "new Intl.DateTimeFormat('en', { timeZone: 'UTC' }).formatToParts()[0].value",
    "Temporal": "Temporal.Now.plainDateISO('UTC')",
    "coin": "Math.random() < 0.5",
    "shuffle": "[1, 2, 3, 4, 5, 6, 7].sort(() => Math.random() - 0.5)",
    "locale of a date": "new Date(0).toLocaleDateString()",
    "hour": "new Date(0).getHours()",
    "zone offset": "new Date(0).getTimezoneOffset()",
    "collation": "['i', 'ı', 'z', 'ä'].sort((a, b) => a.localeCompare(b))",
    "generated key": "(await crypto.subtle.exportKey('raw', await crypto.subtle.generateKey("
    "{ name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])))[Symbol.toStringTag] + new Uint8Array(await crypto.subtle"
    ".exportKey('raw', await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign'])))",
}


@pytest.mark.parametrize("expression", UNSTABLE.values(), ids=UNSTABLE)
def test_what_differs_between_runs_is_refused(expression: str):
    """Time, chance, time zone and locale show in the second run, and the case that has them is shown."""
    (flaw,) = run(f'return [{{ id: "a.1", prompt: "p" }}, {{ id: "a.2", prompt: String({expression}) }}];')
    assert flaw.index == 1
    assert "case 'a.2' differs between two runs: " in flaw.message


def test_a_failure_of_the_second_run_only_says_so():
    """An error that depends on the time is not the author's bug alone, but a dependency."""
    (flaw,) = run("if (new Date().getFullYear() > 2020) throw new Error('too late'); return [];")
    assert "threw Error: too late (the second of two runs failed" in flaw.message


def test_late_differences_are_shown_where_they_are():
    """Long cases are cut to the part that differs."""
    (flaw,) = run(f'return [{{ id: "a.1", prompt: "{"x" * 5000}" + Math.random() + "{"y" * 5000}" }}];')
    assert len(flaw.message) < 500
    assert "xxx0.6" in flaw.message
    assert "xxx0.2" in flaw.message


def test_timers_end_with_the_run():
    """A timer that would go on for ever does not keep the answer back."""
    assert run("setInterval(() => {}, 5); return [];") == []

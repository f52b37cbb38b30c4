"""Credentials that a coding tool could come by, found where they are kept and taken out of what is kept of its runs."""

from __future__ import annotations

import json

import pytest

from trunchray.core.masking import LONGEST, MOST, Mask, MaskedStream
from trunchray.core.secrets import secrets_in, secrets_of

KEY = "k9Xv72mQpL0aZr"


@pytest.mark.parametrize("pieces", [1, 3, 7, 1000])
def test_a_credential_is_masked_however_it_is_cut(pieces: int):
    """At the beginning, in the middle, twice in a row and at the end; what only begins like one stays."""
    content = f"{KEY} and {KEY}{KEY}, {KEY[:-1]}! {KEY}".encode()
    stream = MaskedStream(Mask([KEY]))
    masked = b"".join(stream.feed(content[at : at + pieces]) for at in range(0, len(content), pieces)) + stream.end()
    assert masked.decode() == f"[masked] and [masked][masked], {KEY[:-1]}! [masked]"


def test_without_credentials_nothing_is_held_back():
    """What a tool prints is kept as it comes."""
    stream = MaskedStream(Mask(["short"]))
    assert (stream.feed(b"short"), stream.end()) == (b"short", b"")


@pytest.mark.parametrize("pieces", [1, 5, 1000])
def test_the_longer_of_two_is_masked_as_a_whole(pieces: int):
    """One that is the beginning of another does not leave the other's end."""
    stream = MaskedStream(Mask([KEY, f"{KEY}.rest-of-it"]))
    content = f"<{KEY}.rest-of-it>".encode()
    parts = [stream.feed(content[at : at + pieces]) for at in range(0, len(content), pieces)]
    assert b"".join([*parts, stream.end()]) == b"<[masked]>"


def test_what_json_makes_of_a_credential_is_masked_as_well():
    """Events are JSON, where quotes, line ends and letters look different."""
    secret = 'pä"ss\nword'
    mask = Mask([secret])
    for text in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), f'"{secret}"'):
        assert mask.text(text) == '"[masked]"'


ESCAPED = 'sk-atk/0123+456<é😀>"q\\n\n&z'


def _as_json(text: str, *, upper: bool = False, every: bool = False) -> str:
    """As encoders write a text that escape more than they need to."""
    units = text.encode("utf-16-be")
    pairs = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    digits = "\\u{:04X}" if upper else "\\u{:04x}"
    if every:
        return "".join(map(digits.format, pairs))
    written = json.dumps(text)[1:-1].replace("/", "\\/").replace("+", digits.format(ord("+")))
    return written.replace("&", digits.format(ord("&"))).replace("<", digits.format(ord("<")))


@pytest.mark.parametrize("pieces", [1, 7, 64, 100_000])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("every", [False, True])
def test_letters_that_need_no_escape_in_json_may_have_one(pieces: int, upper: bool, every: bool):
    """PHP, .NET and Go escape `/`, `+` and `&`; a credential is found however it is cut, also in JSON within JSON."""
    once = _as_json(ESCAPED, upper=upper, every=every)
    assert json.loads(f'"{once}"') == ESCAPED
    twice = json.dumps({"text": f'{{"key": "{once}"}}'})
    content = "".join(f"\\\\ {once}, \\n{ESCAPED}; {twice} {once[:-1]}\n" for _ in range(30)).encode()
    stream = MaskedStream(Mask([ESCAPED]))
    parts = [stream.feed(content[at : at + pieces]) for at in range(0, len(content), pieces)]
    masked = b"".join([*parts, stream.end()]).decode()
    assert masked.count("[masked]") == 90
    assert masked.startswith("\\\\ [masked], \\n[masked]; " + json.dumps({"text": '{"key": "[masked]"}'}))


@pytest.mark.parametrize("before", range(7))
def test_json_stays_json_where_a_credential_is_masked(before: int):
    """However many backslashes are before it."""
    line = f'{{"a": "{chr(92) * 2 * before}{_as_json(KEY, every=True)}"}}'
    assert json.loads(Mask([KEY]).text(line)) == {"a": "[masked]"}


def test_a_json_value_is_masked_whole():
    """Texts and names alike; what is no text stays."""
    masked = Mask([KEY]).value({"a": [f"<{KEY}>", 1, None, True], KEY: {"b": KEY}})
    assert masked == {"a": ["<[masked]>", 1, None, True], "[masked]": {"b": "[masked]"}}


def test_a_file_that_is_no_text_keeps_its_length():
    """What is at a place of an archive stays at that place."""
    assert Mask([KEY]).content(f"\0{KEY}\0".encode()) == b"\0" + b"*" * len(KEY) + b"\0"


def test_how_many_are_looked_for():
    """There is an end to it, which is told."""
    assert Mask(f"secret-{n:05}" for n in range(MOST + 3)).left_out == 3


def test_how_long_one_may_be():
    """A picture in a tool's history does not hold back all that a tool prints; what is not masked is told."""
    mask = Mask(["x" * LONGEST, "y" * (LONGEST + 1)])
    assert (mask.text("x" * LONGEST), mask.text("y" * (LONGEST + 1)), mask.left_out) == (
        "[masked]",
        "y" * (LONGEST + 1),
        1,
    )


def test_credentials_in_a_login_file():
    """Tokens and keys are found, and settings are left."""
    login = {
        "auth_mode": "external",
        "OPENAI_API_KEY": None,
        "tokens": {"id_token": "eyJhbGciOi.eyJzdWIiOiIx.abc123", "account_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
        "password": "correcthorse",
        "last_refresh": "2026-01-01T00:00:00.123456Z",
        "model": "claude-sonnet-4-5-20250929",
        "email": "someone@example.com",
        "hasCompletedProjectOnboarding": True,
    }
    assert sorted(secrets_in(json.dumps(login))) == [
        "correcthorse",
        "eyJhbGciOi.eyJzdWIiOiIx.abc123",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    ]


def test_credentials_in_other_files():
    """As lines of settings, as a key of several lines, and after a colon."""
    text = f"""
model = "gpt-5-codex"
approval_policy = "never"
password = "correcthorse"
api_key={KEY}
//registry.example.com/:_authToken=npm_{KEY}
-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASC
-----END PRIVATE KEY-----
"""
    found = secrets_in(text)
    assert {"correcthorse", KEY, f"npm_{KEY}", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"} <= set(found)
    assert Mask(found).text("gpt-5-codex is never used, see approval_policy") == (
        "gpt-5-codex is never used, see approval_policy"
    )


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ('env_key = "OPENAI_API_KEY"', []),
        ('env_key = "my_variable"', []),
        ('{"envKey": "CODING_PLAN_API_KEY"}', []),
        ('{"apiKey": "${OPENAI_API_KEY}"}', []),
        ('{"apiKey": "$OPENAI_API_KEY"}', []),
        ('{"key": "ArrowDown", "bindings": [{"key": "ctrl+shift+enter"}]}', []),
        ('private_key = "~/.ssh/id_work"', []),
        ('api_key = "not-needed"', []),
        ('api_key = "lm-studio"', []),
        ('password = "correcthorse"', ["correcthorse"]),
        ('password = "$correcthorse"', ["$correcthorse"]),
        (f'key = "{KEY}"', [KEY]),
        (f'env_key = "{KEY}"', [KEY]),
        (f'api_key = "{KEY.upper()}_{KEY.upper()}"', [f"{KEY.upper()}_{KEY.upper()}"]),
    ],
)
def test_what_only_says_where_a_credential_is_is_none(setting: str, found: list[str]):
    """A program that a tool wrote with `os.environ["OPENAI_API_KEY"]` reaches its grader as it is."""
    assert secrets_in(setting) == found


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("ANTHROPIC_API_KEY", "correcthorse", ["correcthorse"]),
        ("SOMETHING", KEY, [KEY]),
        ("HTTPS_PROXY", "http://me:secretly@proxy:80", ["http://me:secretly@proxy:80"]),
        ("ANTHROPIC_MODEL", "claude-sonnet-4-5", []),
        ("ANTHROPIC_BASE_URL", "https://api.example.com/v1", []),
        ("USER", "somebody", []),
        ("ANTHROPIC_API_KEY", "short", []),
        ("PGPASSWORD", "correct horse battery", ["correct horse battery"]),
        ("DB_PASS", 'pa"ss\\wör/d+9x&Zq77', ['pa"ss\\wör/d+9x&Zq77']),
        ("SMTPPASS", "correcthorse", ["correcthorse"]),
        ("MYSQL_PWD", "correct horse", ["correct horse"]),
        ("GH_PAT", "correct-horse", ["correct-horse"]),
        ("GHPAT_CI", "correct-horse", []),
        ("GH_PAT_CI", "correct-horse", ["correct-horse"]),
        ("QTOKEN", "correct horse", ["correct horse"]),
        ("PWD", "/home/somebody/work", []),
        ("OLDPWD", "/home/somebody/work", []),
        ("NVM_COMPAT", "a-little", []),
        ("COMPASS", "north-east", []),
        ("SSH_ASKPASS", "/usr/bin/askpass", []),
        ("DB_PASS_FILE", "/run/secrets/pass", []),
        ("MAX_TOKENS", "12345678", []),
    ],
)
def test_credentials_in_variables(name: str, value: str, found: list[str]):
    """By name or by look; a model, an address or a user that a transcript names is none."""
    assert secrets_of(name, value) == found

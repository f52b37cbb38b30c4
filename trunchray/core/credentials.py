"""What looks like a credential, and so may not be written down with a run."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SECRET_NAME = re.compile(r"auth(?!ors?(-|$))|cookie|(^|-)(key|token|secret|password|passwd|signature)(-|$)|apikey")
_SECRET_VALUE = re.compile(
    r"(?<![A-Za-z0-9])(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|gh[opsur]_\w{16,}|github_pat_\w+|glpat-\S+|xox[a-z]-\S+"
    r"|(AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|-----BEGIN .*|Bearer (?![${])\S+|\w[\w+.-]*://[^/\s@]*:[^/\s@]+@.*",
    re.DOTALL,
)
_LAST_WORD = re.compile(r"(^|-)(key|token|secret|password|passwd|passphrase|credential)$|apikey$")
_PASSED_ON = re.compile(
    r"(key|token|secret|passwo?r?d|passphrase|credentials?|(?<!com)(?<!by)(?<!ask)pass|(?<!^)(?<!^old)pwd|(?<!com)(?<!s)pat)s?$"
    r"|(?<![a-z])(pass|pwd|pat|token|secret)-(?!file|path|dir|time|ttl|len|max|min|length|url|limit|count|expir|type)"
)
"""What variables are called that a tool is given: `PGPASSWORD`, `DB_PASS`, `MYSQL_PWD`, `GH_PAT`; none is a `PWD`."""
_SETTING = re.compile(r"-{0,2}([A-Za-z][\w.-]*)(?:=|: +)(\S+)")
"""`--name=value`, `NAME=value`, or a header."""
_ELSEWHERE = re.compile(r"[${~].*|.*\{(prompt|query|cwd)\}.*", re.DOTALL)
"""A variable, a path in the home, or what stands for something else."""
_HARMLESS = re.compile(
    r"\d*|true|false|yes|no|on|off|none|dummy|empty|unused|not-needed|local|ollama|lm-studio", re.IGNORECASE
)
"""The latter are what servers on one's own machine are given, which ask for a key and do not look at it."""
_OF_VARIABLE = re.compile(r"(^|-)env-key$")
"""Settings that hold the name of a variable, in which a key is."""
_NO_SECRET = re.compile(rf"{_HARMLESS.pattern}|~/.*|\$?\{{?(?-i:[A-Z][A-Z0-9]*(_[A-Z0-9]+)+)\}}?", re.IGNORECASE)
"""Nor is a path in the home, or the name of a variable."""


def names_secret(name: str) -> bool:
    """Whether a header or an environment variable of this name holds a credential, as far as its name tells."""
    return _SECRET_NAME.search(name.lower().replace("_", "-")) is not None


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable with this value gives a credential away; a number or a yes or no is none, whatever its name.

    This is a help against accidents: nothing tells every secret from other text.
    """
    if _SECRET_VALUE.fullmatch(value.strip()):
        return True
    return names_secret(name) and not _HARMLESS.fullmatch(value.strip())


def given_secret(name: str, value: str) -> bool:
    """The same for a variable that somebody has chosen to give to a tool, for which less of a name is enough."""
    named = _PASSED_ON.search(name.lower().replace("_", "-")) is not None
    return looks_secret(name, value) or (named and not _HARMLESS.fullmatch(value.strip()))


def is_credential(name: str) -> bool:
    """Whether what has this name, in any spelling, is a credential itself, and no setting or count of such.

    `accessToken` and `api_key` are, `auth_mode`, `max_tokens` and `key_file` are not.
    """
    return _LAST_WORD.search(_words(name)) is not None


def _words(name: str) -> str:
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().replace("_", "-").replace(".", "-")


def set_secret(name: str, value: str) -> bool:
    """Whether a setting of a file gives a credential away by its name, and does not only say where there is one.

    `env_key = "OPENAI_API_KEY"` does the latter.
    """
    return is_credential(name) and not (_OF_VARIABLE.search(_words(name)) or _NO_SECRET.fullmatch(value.strip()))


def secret_arguments(tokens: Sequence[str]) -> list[int]:
    """The places, from 0, of the tokens of a command that hold something like a credential."""
    return [n for n, token in enumerate(tokens) if _gives_away(token, tokens[n - 1] if n else "")]


def _gives_away(token: str, before: str) -> bool:
    if _SECRET_VALUE.search(token):
        return True
    setting = _SETTING.fullmatch(token)
    if setting:
        name, value = setting.groups()
    elif before.startswith("-") and not token.startswith("-"):
        name, value = before.lstrip("-"), token
    else:
        return False
    return is_credential(name) and not (_HARMLESS.fullmatch(value) or _ELSEWHERE.fullmatch(value))

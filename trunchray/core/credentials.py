"""What looks like a credential, and so may not be written down with a run."""

from __future__ import annotations

import re

_SECRET_NAME = re.compile(r"auth(?!ors?(-|$))|cookie|(^|-)(key|token|secret|password|passwd|signature)(-|$)|apikey")
_SECRET_VALUE = re.compile(
    r"(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|gh[opsur]_\w{16,}|github_pat_\w+|glpat-\S+|xox[a-z]-\S+|(AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|-----BEGIN .*|Bearer \S+|\w[\w+.-]*://[^/\s@]*:[^/\s@]+@.*",
    re.DOTALL,
)
_HARMLESS = re.compile(
    r"\d*|true|false|yes|no|on|off|none|dummy|empty|unused|not-needed|local|ollama|lm-studio", re.IGNORECASE
)
"""The latter are what servers on one's own machine are given, which ask for a key and do not look at it."""


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

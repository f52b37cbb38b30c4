"""The manifest of a release: an author's benchmark, compiled once and never changed.

A release is named by what it asks and how it grades. Its `digest` covers the manifest, which itself holds the hash of
the cases and of every module, so one changed prompt, tool, limit or grading rule is another release. Where the sources
came from, what compiled them, and the wording of warnings are not part of it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from trunchray.core.agent import Limits
from trunchray.core.case import ID_PATTERN, MAX_CASES, TOOL_NAME_PATTERN
from trunchray.core.digest import canonical, sha256
from trunchray.core.frozen import CamelFrozen

FORMAT = 1

SEMANTICS: dict[str, str] = {
    "non_empty": "js-trim/1",
    "exact": "js-trim/1",
    "contains": "lower-substring/1",
    "answer_bank": "nfkc-lower-ws/1",
    "gsm8k": "hash-number/1",
    "tool_call_syntax": "json-assignment/1",
    "custom": "isolated-call/1",
}
"""The grading rules in force, by kind. A rule that changes gets another number, and so makes another release."""

_UNHASHED = ("digest", "seal", "source", "compiler", "warnings")

Sha256 = str
"""64 lower-case hex digits."""

_HEX = r"^[0-9a-f]{64}$"


class ReleaseLimits(Limits):
    """The limits a case has when neither the run nor the model says otherwise, written in camel case."""

    model_config = CamelFrozen.model_config


class ReleaseEval(CamelFrozen):
    """One eval module. `path` is relative to the benchmark directory; `cases` counts its compiled cases."""

    id: str = Field(pattern=ID_PATTERN)
    title: str
    cases: int = Field(ge=0)
    path: str


class ReleaseTool(CamelFrozen):
    """A tool that cases may name; `input_schema` is the JSON Schema of its arguments, as its library produced it."""

    name: str = Field(pattern=TOOL_NAME_PATTERN)
    description: str
    input_schema: dict[str, JsonValue]
    module: Sha256 = Field(pattern=_HEX)


class ReleaseEvaluator(CamelFrozen):
    """A custom evaluator: the export of a module that holds an `evaluate` function.

    `key` is `<source path>#<export>`, as in the cases that use it.
    """

    key: str
    module: Sha256 = Field(pattern=_HEX)
    export: str


class TransformerSource(CamelFrozen):
    """One input of a transformer; `path` is relative to the repository root."""

    path: str
    sha256: Sha256 = Field(pattern=_HEX)
    bytes: int = Field(ge=0)


class ReleaseTransformer(CamelFrozen):
    """A transformer that made cases; `path` is relative to the benchmark directory, as those of evals.

    `sha256` is of its source file, `sources` are by their authored names.
    """

    name: str
    path: str
    sha256: Sha256 = Field(pattern=_HEX)
    sources: dict[str, TransformerSource]
    case_count: int = Field(ge=1)


class ReleaseCases(CamelFrozen):
    """What `cases.jsonl` must be."""

    count: int = Field(ge=1, le=MAX_CASES)
    sha256: Sha256 = Field(pattern=_HEX)
    bytes: int = Field(ge=1)


class Dependencies(CamelFrozen):
    """The npm packages of the bundles: none, or as the lockfile of kind `lockfile` pinned them, or whatever was newest.

    `ai` and `zod` are the installed versions, None when the repository does not use them. `packages` is SHA-256 over
    name, version and hash of every installed package, None without any.
    """

    state: Literal["none", "locked", "unlocked"] = "none"
    lockfile: str | None = None
    ai: str | None = None
    zod: str | None = None
    packages: Sha256 | None = None


class ReleaseSource(CamelFrozen):
    """Where the sources came from. `remote` holds no credentials; everything is None where git could not tell."""

    remote: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    """Whether the checkout held changes that `commit` does not have."""
    config: str | None = None
    """The config's name in the benchmark directory; None without one."""


class Compiler(CamelFrozen):
    """The versions that made the release."""

    trunchray: str
    deno: str
    esbuild: str


class Release(CamelFrozen):
    """`release.json`. `digest` and `seal` are empty until `sealed` fills them in."""

    format: Literal[1] = FORMAT
    digest: str = ""
    """The identity of the release: SHA-256 over what it asks and how it grades."""
    seal: str = ""
    """SHA-256 of the canonical form of everything else in `release.json`, so that no byte of it can change unseen."""
    protocol_version: Literal[1] = 1
    title: str
    version: str
    description: str | None = None
    license: str | None = None
    homepage: str | None = None
    tags: tuple[str, ...] = ()
    limits: ReleaseLimits = ReleaseLimits()
    evals: tuple[ReleaseEval, ...] = Field(min_length=1)
    tools: tuple[ReleaseTool, ...] = ()
    evaluators: tuple[ReleaseEvaluator, ...] = ()
    transformers: tuple[ReleaseTransformer, ...] = ()
    cases: ReleaseCases
    dependencies: Dependencies = Dependencies()
    semantics: dict[str, str] = SEMANTICS
    source: ReleaseSource = ReleaseSource()
    compiler: Compiler
    warnings: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The name of the folder it is stored in: `<slug>-<version>-<first 12 digits of the digest>`."""
        return f"{slug(self.title)}-{_safe(self.version)}-{self.digest[:12]}"

    @property
    def modules(self) -> frozenset[Sha256]:
        """The hashes of all modules that the release needs."""
        return frozenset(entry.module for entry in (*self.tools, *self.evaluators))

    def manifest(self) -> dict[str, JsonValue]:
        """The content of `release.json`; fields without a value are left out, so that new ones change no digest."""
        return self.model_dump(mode="json", exclude_none=True)

    def content(self) -> bytes:
        """The bytes of `release.json`."""
        return (json.dumps(self.manifest(), indent=2, ensure_ascii=False) + "\n").encode()


def release_digest(manifest: Mapping[str, JsonValue]) -> Sha256:
    """The identity of a manifest: SHA-256 of its RFC 8785 form without digest, seal, source, compiler and warnings."""
    return sha256(canonical({name: value for name, value in manifest.items() if name not in _UNHASHED}))


def release_seal(manifest: Mapping[str, JsonValue]) -> Sha256:
    """SHA-256 of the RFC 8785 form of everything but the seal itself."""
    return sha256(canonical({name: value for name, value in manifest.items() if name != "seal"}))


def sealed(release: Release) -> Release:
    """The release with its digest and seal filled in."""
    named = release.model_copy(update={"digest": release_digest(release.manifest())})
    return named.model_copy(update={"seal": release_seal(named.manifest())})


def slug(title: str) -> str:
    """Lower-case ASCII letters, digits and dashes, at most 48 characters; `benchmark` when nothing else is left."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_title)[:48].strip("-") or "benchmark"


def _safe(version: str) -> str:
    """A semantic version as part of a file name: `+` means a blank in some URLs."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", version)[:48]

"""The manifest of a release: its digest, its seal and its name."""

import json

import pytest

from trunchray.core.release import (
    Compiler,
    Release,
    ReleaseCases,
    ReleaseEval,
    ReleaseLimits,
    ReleaseSource,
    release_digest,
    release_seal,
    sealed,
    slug,
)

COMPILER = Compiler(trunchray="1", deno="2", esbuild="3")


def make_release(**changes) -> Release:
    fields = {
        "title": "Support quality",
        "version": "1.0.0",
        "evals": (ReleaseEval(id="a", title="A", cases=1, path="evals/a.ts"),),
        "cases": ReleaseCases(count=1, sha256="a" * 64, bytes=3),
        "compiler": COMPILER,
    }
    return sealed(Release(**(fields | changes)))


def test_digest_is_pinned():
    """An upgrade never gives the same manifest another digest."""
    assert make_release().digest == "e710d86a1ef1ebea77c4c0a6f0470c5aba6f415656fa02aa9cd9b811d4bb0e01"


@pytest.mark.parametrize(
    "changes",
    [
        {"source": ReleaseSource(remote="https://example.org/x.git", commit="c0ffee", dirty=True)},
        {"compiler": Compiler(trunchray="9", deno="9", esbuild="9")},
        {"warnings": ("evals/a.ts: worded anew",)},
    ],
)
def test_digest_leaves_out_circumstances(changes):
    """Where the sources came from, what compiled them and the wording of warnings change the seal, not the digest."""
    assert make_release(**changes).digest == make_release().digest
    assert make_release(**changes).seal != make_release().seal


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "Other"},
        {"limits": ReleaseLimits(max_steps=11)},
        {"cases": ReleaseCases(count=1, sha256="b" * 64, bytes=3)},
        {"semantics": {"exact": "js-trim/2"}},
        {"license": "MIT"},
    ],
)
def test_digest_covers_what_is_asked_and_how_it_is_graded(changes):
    """A changed limit, case, grading rule or description is another release."""
    assert make_release(**changes).digest != make_release().digest


def test_content_round_trips():
    """`release.json` reads back as the release it was written from, and carries its own digest and seal."""
    release = make_release(description="Ünï", tags=("x",))
    manifest = json.loads(release.content())
    assert Release.model_validate(manifest) == release
    assert (release_digest(manifest), release_seal(manifest)) == (release.digest, release.seal)


def test_limits_are_written_in_camel_case():
    """The manifest spells limits as authors do."""
    assert make_release().manifest()["limits"] == {"maxSteps": 10, "maxToolCalls": 20, "maxOutputTokens": 4096}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Support quality", "support-quality"),
        ("  Ünïcode / Straße! ", "unicode-strae"),
        ("日本語", "benchmark"),
        ("../../etc", "etc"),
        ("x" * 500, "x" * 48),
        ("a" * 47 + " b", "a" * 47),
    ],
)
def test_slug_is_a_safe_bounded_name(title, expected):
    """Any title gives a non-empty file name of at most 48 lower-case letters, digits and dashes."""
    assert slug(title) == expected


def test_folder_names_title_version_and_digest():
    """The folder of a release says which release it is."""
    release = make_release(version="1.0.0-beta.1+build")
    assert release.folder == f"support-quality-1.0.0-beta.1-build-{release.digest[:12]}"

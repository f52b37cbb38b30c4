"""Which cases of two runs are the same: those whose content is, or whose answers are, whatever the release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Matching:
    """The cases of a first and a second run, told apart by id and content."""

    alike: Mapping[str, str]
    """For each case of the second run that the first has too: its id in the first."""
    added: frozenset[str]
    """Of the second run alone."""
    removed: frozenset[str]
    """Of the first run alone."""
    changed: frozenset[str]
    """In both by id, but with another content: another prompt, other tools or data, or graded otherwise."""
    regradable: int = 0
    """How many of `changed` ask the same, and are only graded otherwise: by other checks, or other data for them."""
    renamed: int = 0
    """How many of `alike` have another id in each run."""
    regraded: int | None = None
    """Where both runs hold the same stored answers: how many of `alike` are graded otherwise in each. Else None."""


def match(first: Mapping[str, str], second: Mapping[str, str]) -> Matching:
    """Match cases, each given by its id and the digest of its content.

    A case is the same when id and content are; else when its content, which no other case of its run has, is found
    under one new id.
    """
    alike = {case: case for case, content in second.items() if first.get(case) == content}
    rest = {case for case in first.keys() & second.keys() if case not in alike}
    gone = _by_content({case: content for case, content in first.items() if case not in second})
    new = _by_content({case: content for case, content in second.items() if case not in first})
    renamed = {new[content]: gone[content] for content in new.keys() & gone.keys()}
    return Matching(
        alike=alike | renamed,
        added=frozenset(second.keys() - first.keys() - renamed.keys()),
        removed=frozenset(first.keys() - second.keys() - set(renamed.values())),
        changed=frozenset(rest),
        renamed=len(renamed),
    )


def match_answers(first: Mapping[str, str], second: Mapping[str, str], asked: Collection[str]) -> Matching:
    """Match cases of two runs that hold the same stored answers, as `match` is given them.

    A case is the same when both have it, and it is one of `asked`: those that ask the same in both.
    """
    shared = first.keys() & second.keys()
    alike = {case: case for case in second if case in shared and case in asked}
    return Matching(
        alike=alike,
        added=frozenset(second.keys() - shared),
        removed=frozenset(first.keys() - shared),
        changed=frozenset(shared - alike.keys()),
        regraded=sum(first[case] != second[case] for case in alike),
    )


def _by_content(cases: Mapping[str, str]) -> dict[str, str]:
    """The case of each content that only one has."""
    counts = Counter(cases.values())
    return {content: case for case, content in cases.items() if counts[content] == 1}

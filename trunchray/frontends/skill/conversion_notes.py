"""Notes on a conversion: what moved, and what the other format has no use for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trunchray.core.excerpt import excerpt
from trunchray.frontends.skill.eval_lines import KEYS, Object, lines, paths_of, text_of

_RUN = ("id", "prompt", "expected_output", "files", "state_prefix", "timeout", *KEYS)
"""The keys of an eval that a run uses."""
_CREATOR = ("id", "input", "rubric", "files")


def notes_on_evals(evals: Sequence[Object], cases: Sequence[Object]) -> tuple[str, ...]:
    """Of evals, and the cases that were made of them."""
    listed = [(key, entry) for one in evals for key, some in lines(one).items() for entry in some]
    assertions = sum(key == "assertions" for key, _ in listed)
    details = Counter(
        key for _, entry in listed if isinstance(entry, dict) for key in entry if entry[key] != text_of(entry)
    )
    return _told(
        (assertions, "{} from 'assertions' became rubric lines", "line"),
        (len(details), f"only the text of expectations that are objects is graded, not {_named(details)}", ""),
        (sum(text_of(entry) is None for _, entry in listed), "{} without text left out of the rubric", "expectation"),
        (
            sum(bool(one.get("files")) > bool(paths_of(one)) for one in evals),
            "{} whose 'files' is not a list of paths: left out",
            "eval",
        ),
        (_without(evals, "prompt"), "{} without a prompt: write the input before running", "eval"),
        (_without(cases, "rubric"), "{} without a rubric cannot be graded: write expectations", "case"),
        (*_foreign(evals, _RUN, "trunchray"), ""),
        (_kept(cases, "as_eval"), "{} also kept under 'as_eval' for converting back", "eval"),
        (
            _changed(evals, "as_case", cases),
            "{} edited after the conversion: what is under 'as_case' is not restored",
            "eval",
        ),
    )


def notes_on_cases(cases: Sequence[Object], evals: Sequence[Object]) -> tuple[str, ...]:
    """Of cases, and the evals that were made of them."""
    prefixes = sum(bool(one.get("state_prefix")) for one in cases)
    return _told(
        (prefixes, "{} with a state_prefix, which is kept, but skill-creator sends only the prompt", "case"),
        (*_foreign(cases, (*_CREATOR, "state_prefix"), "skill-creator"), ""),
        (_kept(evals, "as_case"), "{} also kept under 'as_case' for converting back", "case"),
        (
            _changed(cases, "as_eval", evals),
            "{} edited after the conversion: what is under 'as_eval' is not restored",
            "case",
        ),
    )


def _told(*notes: tuple[int, str, str]) -> tuple[str, ...]:
    """Those that there is something of, each with its number and what it counts."""
    return tuple(text.format(f"{count} {noun}{'s' if count > 1 else ''}") for count, text, noun in notes if count)


def _without(entries: Sequence[Object], key: str) -> int:
    return sum(not one.get(key) for one in entries)


def _kept(entries: Sequence[Object], key: str) -> int:
    return sum(key in one for one in entries)


def _changed(before: Sequence[Object], key: str, after: Sequence[Object]) -> int:
    """Entries that held what they had been made of, and were not given back as that."""
    return sum(key in one and one[key] != now for one, now in zip(before, after, strict=True))


def _foreign(entries: Sequence[Object], known: Sequence[str], reader: str) -> tuple[int, str]:
    keys = Counter(key for one in entries for key in one if key not in (*known, "as_case", "as_eval"))
    return len(keys), f"keys that {reader} does not use are kept: {_named(keys)}"


def _named(counts: Counter[str]) -> str:
    shown = [f"{excerpt(key, 40)!r} ({count})" for key, count in sorted(counts.items())]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return (", ".join(shown[:8]) + more).replace("{", "{{").replace("}", "}}")

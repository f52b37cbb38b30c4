"""skills convert and skills aggregate, as people and programs meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import CommandLine

EVALS = {
    "skill_name": "writer",
    "evals": [
        {"id": 1, "prompt": "Schreibe für mich", "expected_output": "ein Brief", "assertions": ["kurz"], "files": []},
        {"id": 2, "prompt": "", "expected_output": "", "assertions": [{"name": "n"}], "files": []},
    ],
}


@pytest.fixture
def evals(here: Path) -> Path:
    file = here / "evals.json"
    file.write_text(json.dumps(EVALS, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return file


def timings(folder: Path, **seconds: tuple[float, ...]) -> None:
    for case, some in seconds.items():
        for number, elapsed in enumerate(some, 1):
            attempt = folder / case / f"run-{number}"
            attempt.mkdir(parents=True)
            record = {"case_id": case, "status": "ok" if elapsed < 60 else "timeout", "elapsed_s": elapsed}
            (attempt / "timing.json").write_text(json.dumps(record))


def test_convert_writes_what_can_be_read_by_people(evals: Path, here: Path, trunchray: CommandLine):
    """Folders are made, umlauts stay, two blanks indent, a line ends it; what is to be known goes to stderr."""
    done = trunchray("skills", "convert", evals, "--output", "a/b/cases.json")
    assert (done.code, done.out) == (0, "a/b/cases.json: 2 cases\n")
    assert "evals.json: 2 lines from 'assertions' became rubric lines" in " ".join(done.err.split())
    text = (here / "a" / "b" / "cases.json").read_text(encoding="utf-8")
    assert '\n      "input": "Schreibe für mich",\n' in text
    assert text.endswith("}\n")


def test_convert_goes_back_to_the_same_bytes(evals: Path, here: Path, trunchray: CommandLine):
    """Through files, or through stdout, which holds nothing but the JSON."""
    (here / "cases.json").write_text(trunchray("skills", "convert", evals).out, encoding="utf-8")
    back = trunchray("skills", "convert", "cases.json", "--to", "skill-creator", "-o", "back.json", "--json")
    assert back.json == {"output": "back.json", "evals": 2, "notes": []}
    assert (here / "back.json").read_bytes() == evals.read_bytes()


def test_convert_refuses_what_it_cannot_read(evals: Path, here: Path, trunchray: CommandLine):
    """No traceback, exit code 2, nothing written."""
    assert "is a case file already; use --to skill-creator" in trunchray.refused(
        "skills", "convert", _written(here, "cases.json", {"cases": []}), "-o", "x.json"
    )
    assert "is not JSON" in trunchray.refused("skills", "convert", _written(here, "broken.json", "{"))
    assert "No such file" in trunchray.refused("skills", "convert", "none.json")
    assert "--skill-name is only for --to skill-creator" in trunchray.refused(
        "skills", "convert", evals, "--skill-name", "x"
    )
    assert "cannot write" in trunchray.refused("skills", "convert", evals, "-o", "evals.json/x.json")


def test_aggregate_compares_two_configs(here: Path, trunchray: CommandLine):
    """As JSON on stdout with or without --json: the variant less the baseline, case by case too."""
    timings(here / "bare", a=(10, 12, 14), b=(10, 12, 600))
    timings(here / "skill", a=(13, 15, 17), b=(13, 15, 17))
    plain = trunchray("skills", "aggregate", "--baseline", "bare", "--variant", "skill")
    assert (plain.code, plain.err) == (0, "")
    assert trunchray("skills", "aggregate", "--baseline", "bare", "--variant", "skill", "--json").out == plain.out
    assert list(plain.json) == ["baseline", "variant", "delta"]
    assert (plain.json["baseline"]["by_status"], plain.json["baseline"]["settled"]) == ({"ok": 5, "timeout": 1}, False)
    assert (plain.json["variant"]["runs"], plain.json["variant"]["settled"]) == (6, True)
    assert plain.json["delta"]["elapsed_s"]["delta"] == pytest.approx(15 - 58 / 5)
    assert plain.json["variant"]["cases"]["a"]["metrics"]["elapsed_s"]["stddev"] == 2
    every = trunchray("skills", "aggregate", "--baseline", "bare", "--variant", "skill", "--all-statuses").json
    assert every["delta"]["elapsed_s"]["baseline_mean"] == pytest.approx(658 / 6)


def test_aggregate_sums_up_one_config(here: Path, trunchray: CommandLine):
    """Of a JSON file; what is doubtful is said on stderr."""
    file = _written(here, "records.json", {"runs": [{"x": 1, "tokens_reported": False}, {"x": 3}]})
    done = trunchray("skills", "aggregate", "--runs", file)
    assert done.json["metrics"]["x"] == {"n": 2, "mean": 2, "stddev": pytest.approx(2**0.5), "min": 1, "max": 3}
    assert "1 of 2 attempts report no tokens" in done.err


def test_aggregate_refuses_what_gives_no_figures(here: Path, trunchray: CommandLine):
    """Options that do not fit, no records, none that is ok."""
    timings(here / "late", a=(600,))
    for options in ((), ("--baseline", "x"), ("--runs", "x", "--baseline", "y"), ("--runs", "x", "--variant", "y")):
        assert "give --runs RECORDS, or both" in trunchray.refused("skills", "aggregate", *options)
    assert "no such file or folder" in trunchray.refused("skills", "aggregate", "--runs", "none")
    assert "no attempt has the status ok (1 timeout); add --all-statuses" in trunchray.refused(
        "skills", "aggregate", "--runs", "late"
    )
    assert "has no records" in trunchray.refused("skills", "aggregate", "--runs", _written(here, "none.json", []))
    huge = _written(here, "huge.json", [{"x": 10**400}])
    assert "'x' is an integer of 1329 bits" in trunchray.refused("skills", "aggregate", "--runs", huge)


def _written(folder: Path, name: str, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text)
    return folder / name

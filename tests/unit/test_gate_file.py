"""What a gate allows, from a file and from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.core.gate import Limit
from trunchray.errors import UsageError
from trunchray.frontends.gate_file import read_gate


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "gate.yaml").write_text(text, encoding="utf-8")
    return str(tmp_path / "gate.yaml")


def test_a_whole_file(tmp_path: Path):
    """Every key is read; a bare number is so many misses and no drop."""
    gate = read_gate(
        [
            written(
                tmp_path,
                "confidence: 0.9\nmin_coverage: 0.8\nmodels: [a]\noverall: {min_pass_rate: 0.9, max_drop: 0.02}\n"
                "each: {max_error_share: 0.1, tier: advisory}\nevals:\n  refunds: 2\n  tone: {drop: 1}\n",
            )
        ]
    )
    assert (gate.confidence, gate.min_coverage, gate.models) == (0.9, 0.8, ("a",))
    assert gate.of(None) == Limit(min_pass_rate=0.9, max_drop=0.02)
    assert gate.of("refunds") == Limit(miss=2)
    assert gate.evals["refunds"].dropped == 0
    assert (gate.evals["tone"].miss, gate.evals["tone"].dropped) == (None, 1)
    assert gate.of("other") == Limit(max_error_share=0.1, tier="advisory")


def test_words_replace_what_the_file_says(tmp_path: Path):
    """NAME=LIMITS is one limit, a number or key:value pairs."""
    path = written(tmp_path, "each: 1\nevals: {refunds: 2, tone: 3}\n")
    gate = read_gate([path, "refunds=5", "each=drop:0,tier:supporting", "overall=min_pass_rate:0.5"])
    assert gate.evals == {"refunds": Limit(miss=5), "tone": Limit(miss=3)}
    assert gate.each == Limit(drop=0, tier="supporting")
    assert gate.overall == Limit(min_pass_rate=0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("each: {misses: 1}", "gate.yaml:1: each.misses: unknown key — did you mean 'miss'?"),
        ("each: 1\neval: {a: 1}", "gate.yaml:2: eval: unknown key — did you mean 'evals'?"),
        ("evals:\n  a: {miss: -1}", "gate.yaml:2: evals.a.miss: must be greater than or equal to 0 (got -1)"),
        ("evals:\n  a: {miss: '1'}", "gate.yaml:2: evals.a.miss: must be a valid integer (got '1')"),
        ("each: {min_pass_rate: 90}", "gate.yaml:1: each.min_pass_rate: must be less than or equal to 1 (got 90"),
        ("each: {min_pass_rate: 1}", "to ask that every case passes, give miss: 0 (got 1)"),
        ("each: {tier: vital}", "gate.yaml:1: each.tier: must be 'critical', 'supporting' or 'advisory' (got 'vital')"),
        ("each: true", "gate.yaml:1: each"),
        ("each: {}", "limits nothing; give overall, each or evals"),
        ("", "a gate is a mapping with the keys overall, each and evals"),
        ("[1]", "a gate is a mapping"),
        ("each: [", "gate.yaml:1: not YAML"),
        ("each: 1\nevals: 3", "gate.yaml:2: evals: must be a mapping (got 3)"),
        ("each: 1\nconfidence: 95", "gate.yaml:2: confidence: must be less than 1 (got 95"),
    ],
)
def test_what_is_wrong_in_a_file(text: str, message: str, tmp_path: Path):
    """Each fault is told with its line, what stands there, and what may have been meant."""
    with pytest.raises(UsageError) as told:
        read_gate([written(tmp_path, text)])
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "--allow 'nonsense': give a .yaml file, or NAME=LIMITS"),
        (["a=x"], "--allow 'a=x': 'x' is not key:value; known keys: tier, miss, drop"),
        (["a=miss:x"], "--allow: evals.a.miss: must be a valid integer (got 'x')"),
        (["a=mis:1"], "--allow: evals.a.mis: unknown key — did you mean 'miss'?"),
        (["gone.yaml"], "no such file: 'gone.yaml'"),
        (["a.yaml", "b.yaml"], "--allow names 2 files, a.yaml, b.yaml; give one"),
        ([], "limits nothing"),
    ],
)
def test_what_is_wrong_with_words(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """So is each fault on the command line."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as told:
        read_gate(words)
    assert message in str(told.value)

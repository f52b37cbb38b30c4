"""Real answers: recorded outputs of four published models get exactly the labels that their authors gave them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from scipy.stats import binomtest

from support.runs import rows
from trunchray.cli.main import run_command

LARGER = ("175b_finetuning", "175b_verification")
VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors" / "gsm8k_model_outputs.jsonl"


@pytest.mark.skipif(not VECTORS.exists(), reason="the published outputs are not beside this checkout")
def test_published_outputs_get_their_published_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Compiled from JSONL, replayed as four models over 75 cases, graded by `gsm8k`: 300 of 300 labels agree.

    Of the larger models, verification fixes 24 cases and breaks 5; three models of four miss more than 31 cases.
    """
    published = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    cases = {
        row["case_id"]: {
            "id": row["case_id"],
            "prompt": row["prompt"],
            "evaluate": {"kind": "gsm8k", "expected": row["expected"]},
        }
        for row in published
    }
    outputs: dict[str, list[str]] = defaultdict(list)
    for row in published:
        outputs[row["model"]].append(json.dumps({"case_id": row["case_id"], "output": row["output"]}))
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "cases.jsonl").write_text("\n".join(map(json.dumps, cases.values())), encoding="utf-8")
    (tmp_path / "evals" / "math.ts").write_text(
        'export default { id: "math", cases: "./cases.jsonl", evaluate: { kind: "non_empty" } }', encoding="utf-8"
    )
    config = [f"release: {tmp_path}", "run_id: labels", f"out: {tmp_path}/runs", "pool: local", "models:"]
    for model, recorded in outputs.items():
        (tmp_path / f"{model}.jsonl").write_text("\n".join(recorded), encoding="utf-8")
        config.append(f"  - {{id: mock/replay, name: {model}, mock: {{replay: {model}.jsonl}}}}")
    (tmp_path / "run.yaml").write_text("\n".join(config), encoding="utf-8")

    assert run_command(["run", str(tmp_path / "run.yaml"), "--json"]) == 0

    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["models"]), summary["passed"] + summary["failed"]) == (4, 300)
    assert run_command(["compare", f"{tmp_path}/runs/labels", "--models", *LARGER, "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (pair["fixed"]["count"], pair["broke"]["count"]) == (24, 5)
    assert pair["pass_rate"]["p"] == pytest.approx(binomtest(5, 29).pvalue)
    assert run_command(["gate", f"{tmp_path}/runs/labels", "--allow", "overall=31"]) == 1
    assert capsys.readouterr().out.count("FAIL  ") == 4
    labels = {(row["case_id"], row["model"]): row["label"] for row in published}
    assert {(row["case_id"], row["agent"]): row["passed"] for row in rows(tmp_path / "runs" / "labels")} == labels

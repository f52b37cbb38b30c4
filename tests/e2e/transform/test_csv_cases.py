"""Cases from CSV files, from the file to the compiled case."""

from __future__ import annotations

import json

import pytest

from trunchray.frontends.benchmark.compiler import compile_benchmark

CSV = (
    '\ufeffprompt,id,expected,description\r\n"a ""q""\r\n, b",a.1,"yes, ",\r\n\r\n'
    " 日本語 😀\u2028 ,a.2,no,Own.\r\n2,a.3,__proto__,\r\n"
)


@pytest.fixture
def compiled(tmp_path, write):
    def compiled(evaluate: str, csv: str = CSV):
        write("b/data/a.csv", csv)
        write(
            "b/evals/a.ts",
            f'export default {{ id: "a", description: "Shared.", cases: "../data/a.csv", evaluate: {evaluate} }};',
        )
        return compile_benchmark(tmp_path / "b")

    return compiled


def cases(compiled) -> list[dict]:
    return [json.loads(line) for line in compiled.cases.split(b"\n")[:-1]]


def test_records_become_cases(compiled):
    """Fields keep every character but the prompt's outer blanks; the origin is the file and the record."""
    made = cases(compiled('{ kind: "contains" }'))
    assert [case["input"]["prompt"] for case in made] == ['a "q"\r\n, b', "日本語 😀", "2"]
    assert [case["checks"]["evaluate"] for case in made] == [
        {"kind": "contains", "expected": expected} for expected in ("yes, ", "no", "__proto__")
    ]
    assert [case["description"] for case in made] == ["Shared.", "Own.", "Shared."]
    assert [case["source"] for case in made] == [{"path": "data/a.csv", "row": row} for row in (1, 2, 3)]


def test_without_expected_answers(compiled):
    """With `non_empty` for all, what the column holds is not used."""
    assert {case["checks"]["evaluate"]["kind"] for case in cases(compiled('{ kind: "non_empty" }'))} == {"non_empty"}


def test_line_ends_do_not_change_a_release(compiled):
    """CRLF between records is no part of any case."""
    text = "id,prompt\r\na.1,p\r\n"
    crlf, lf = compiled('{ kind: "non_empty" }', text), compiled('{ kind: "non_empty" }', text.replace("\r", ""))
    assert crlf.release.digest == lf.release.digest

"""CSV files: RFC 4180, and nothing looser."""

from __future__ import annotations

import json

import pytest

from trunchray.frontends.benchmark.csv_cases import as_jsonl, csv_kind, read_csv
from trunchray.frontends.benchmark.csv_text import CsvError, records
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.text_file import not_utf8

FILES = {
    "LF": ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
    "CRLF": ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
    "no last line end": ("a,b\n1,2", [["a", "b"], ["1", "2"]]),
    "byte order mark": ("\ufeffa,b\n", [["a", "b"]]),
    "byte order mark before a quote": ('\ufeff"a",b\n', [["a", "b"]]),
    "a byte order mark elsewhere": ("a\n\ufeffb\n", [["a"], ["\ufeffb"]]),
    "quotes": ('"a ""q"" b","",""""\n', [['a "q" b', "", '"']]),
    "line ends in quotes": ('"a\r\nb\nc\rd",e\n', [["a\r\nb\nc\rd", "e"]]),
    "empty fields": (",\n,,\n", [["", ""], ["", "", ""]]),
    "blank lines": ("\n  \t\r\na,b\n\n\nc,d\n\n", [["a", "b"], ["c", "d"]]),
    "a quoted blank is no blank line": ('""\n" "\n', [[""], [" "]]),
    "blanks are kept": (" a , b\n", [[" a ", " b"]]),
    "other line separators": ("a\u2028b,c\x85d\x0be\n", [["a\u2028b", "c\x85d\x0be"]]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), FILES.values(), ids=FILES)
def test_records(text: str, expected: list[list[str]]):
    """Lines end with CRLF or LF, quotes hold anything, nothing is trimmed, blank lines are no records."""
    assert [record.fields for record in records(text)] == expected


def test_records_know_their_line():
    """A quoted field may have many lines; the next record begins after them."""
    assert [record.line for record in records('a,b\n\n"1\n2\r\n3",x\n4,5')] == [1, 3, 6]


BAD = {
    "quote inside": ('a,b\n1,2"3\n', 1, 2, "an unquoted field holds a quote"),
    "after a quote": ('a,b\n"1\n" ,2\n', 1, 3, "' ' follows the closing quote"),
    "after a quote, at once": ('"a"b\n', 0, 1, "'b' follows the closing quote"),
    "never closed": ('a,b\n\n1,2\n3,"4\n5,6\n', 2, 4, "begins with a quote that never ends"),
    "closed by an escape": ('a,"b""\n', 0, 1, "begins with a quote that never ends"),
    "carriage return": ("a,b\rc,d\r", 0, 1, "a carriage return is not followed by a line feed"),
}


@pytest.mark.parametrize(("text", "record", "line", "message"), BAD.values(), ids=BAD)
def test_what_is_not_csv_is_refused_where_it_is(text: str, record: int, line: int, message: str):
    """The error names the record, without the header, and the line of the file."""
    with pytest.raises(CsvError, match=message) as refused:
        list(records(text))
    assert (refused.value.record, refused.value.line) == (record, line)


def read(text: str | bytes, kind="non_empty") -> tuple[list, list[str]]:
    found = []
    rows = read_csv(text if isinstance(text, bytes) else text.encode(), Position("c.csv"), kind, found)
    return rows, [str(problem) for problem in found]


def test_rows_are_cases():
    """Columns in any order; an empty description is left to the eval; rows count from 1 without the header."""
    rows, problems = read("prompt,description,id\np,,a\nq,d,b\n")
    assert problems == []
    assert rows == [
        (Position("c.csv", 1), {"id": "a", "prompt": "p"}),
        (Position("c.csv", 2), {"id": "b", "prompt": "q", "description": "d"}),
    ]


@pytest.mark.parametrize("kind", ["exact", "contains"])
def test_expected_answers_become_evaluators(kind):
    """Each row is graded by its own `expected`, kept as it is written."""
    rows, problems = read('id,prompt,expected\na,p," yes "\n', kind)
    assert problems == []
    assert rows[0][1] == {"id": "a", "prompt": "p", "evaluate": {"kind": kind, "expected": " yes "}}


def test_expected_answers_mean_nothing_to_non_empty():
    """The column may be there, empty or not."""
    assert read("id,prompt,expected\na,p,yes\nb,p,\n")[0][0][1] == {"id": "a", "prompt": "p"}


def test_a_bad_record_hides_no_later_one():
    """Records with too few fields are refused one by one; the others are read."""
    rows, problems = read("id,prompt\na\nb,p\nc,p,x\n")
    assert [place.row for place, _ in rows] == [2]
    assert [problem.split(": ")[0] for problem in problems] == ["c.csv:1", "c.csv:3"]


def test_rows_as_json_lines_have_their_row_as_their_line():
    """Line breaks and U+2028 in fields do not end a line."""
    rows, _ = read('id,prompt\na,"1\n2\u2028"\nb,p\n')
    lines = as_jsonl(rows).decode().split("\n")
    assert [json.loads(line)["id"] for line in lines[:-1]] == ["a", "b"]


@pytest.mark.parametrize("kind", ["non_empty", "exact", "contains"])
def test_kinds(kind):
    """Three evaluators can be given for a CSV file, each without `expected`."""
    found = []
    assert csv_kind({"kind": kind}, Position("a.ts", 0, "evaluate"), found, is_function=False) == kind
    assert found == []


@pytest.mark.parametrize("evaluate", [None, "exact", {"kind": "gsm8k"}, {"kind": "exact", "expected": "x"}, {}])
def test_other_evaluators_are_refused(evaluate):
    """Everything else is one problem of the eval."""
    found = []
    assert csv_kind(evaluate, Position("a.ts", 0, "evaluate"), found, is_function=False) is None
    assert len(found) == 1


def test_utf8_is_strict():
    """The line of the first wrong byte is told, also where a character is cut between two chunks or at the end."""
    assert not_utf8(b"") is None
    assert not_utf8("é\n日本語 😀".encode() * 1000) is None
    assert not_utf8(b"fine\nfine\n\xff") == 3
    assert not_utf8(b"fine\n\xed\xa0\xbd") == 2  # half of a surrogate pair
    assert not_utf8(b"\xc0\xaf") == 1  # overlong
    assert not_utf8(b"fine\n\xf0\x9f") == 2
    padding = b"x" * ((1 << 20) - 1)
    assert not_utf8(padding + "é".encode() + b"\n\n") is None
    assert not_utf8(padding + b"\xc3\n\n") == 1
    assert not_utf8(padding + b"\n\n" + b"\xc3\n\n") == 3

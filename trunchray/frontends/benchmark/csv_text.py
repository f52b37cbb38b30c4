"""Comma-separated values after RFC 4180, and nothing looser: what is not clearly meant is refused.

Python's own reader accepts quotes inside unquoted fields, text after a closing quote and quotes that never close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trunchray.core import javascript

_quoted = re.compile(r'"((?:[^"]++|"")*+)"')
_plain = re.compile(r'[^",\r\n]*+')
_line_end = re.compile(r"\r\n|\n|\Z")


@dataclass(frozen=True)
class Record:
    """The fields of one record, and the line of the file, from 1, on which it begins."""

    line: int
    fields: list[str]


class CsvError(ValueError):
    """The text is not CSV from here on. `record` counts as in `records`; `line` is a line of the file, from 1."""

    def __init__(self, message: str, *, record: int, line: int) -> None:
        super().__init__(message)
        self.record = record
        self.line = line


def records(text: str) -> Iterator[Record]:
    """The records of a file, the header first. Lines end with CRLF or LF; blank lines are skipped.

    Raises:
        CsvError: at the first place that is not CSV.
    """
    count, at, line = 0, 1 if text.startswith("\ufeff") else 0, 1
    while at < len(text):
        fields, end = _record(text, at, count, line)
        if len(fields) > 1 or text[at] == '"' or javascript.trim(fields[0]):
            yield Record(line, fields)
            count += 1
        line += text.count("\n", at, end)
        at = end


def _record(text: str, at: int, record: int, line: int) -> tuple[list[str], int]:
    """The fields of the record that begins at `at`, and where the next one begins."""
    fields: list[str] = []
    begun = at
    while True:
        quoted = text.startswith('"', at)
        match = (_quoted if quoted else _plain).match(text, at)
        if match is None:
            raise CsvError(
                "a field begins with a quote that never ends", record=record, line=line + text.count("\n", begun, at)
            )
        fields.append(match[1].replace('""', '"') if quoted else match[0])
        at = match.end()
        if end := _line_end.match(text, at):
            return fields, end.end()
        if text[at] != ",":
            where = line + text.count("\n", begun, at)
            raise CsvError(_complaint(text[at], quoted=quoted), record=record, line=where)
        at += 1


def _complaint(character: str, *, quoted: bool) -> str:
    if character == "\r":
        return "a carriage return is not followed by a line feed; end lines with CRLF or LF, or quote the field"
    if quoted:
        return f"{character!r} follows the closing quote of a field; a quote inside a quoted field is written twice"
    return "an unquoted field holds a quote; put the field in quotes and write each quote inside twice"
